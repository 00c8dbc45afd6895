//! Tests the plugin in a terminal. The output must fit the width, even if the terminal reports no height.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Runs a command in a terminal of the given size and returns its output.
fn in_terminal(columns: u16, rows: u16, arguments: &[&str]) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let name = name.to_str().unwrap();
    let terminal = OpenOptions::new()
        .read(true)
        .write(true)
        .open(name)
        .unwrap();
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&terminal, size).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-vap"));
    command
        .args(arguments)
        .env("NO_COLOR", "1")
        .env_remove("COLUMNS");
    let mut child = command.stdout(Stdio::from(terminal)).spawn().unwrap();
    // Drops the command, because it owns a handle of the terminal. The terminal is closed when the last handle is
    // dropped.
    drop(command);
    let mut output = Vec::new();
    let mut master = File::from(master);
    let mut piece = [0; 4096];
    // Reading fails after the terminal is closed.
    while let Ok(n) = master.read(&mut piece) {
        output.extend_from_slice(piece.get(..n).unwrap());
    }
    assert!(child.wait().unwrap().success());
    String::from_utf8(output).unwrap().replace("\r\n", "\n")
}

#[test]
fn lines_fit_width_of_terminal() {
    let widest = |columns, rows| {
        let text = in_terminal(columns, rows, &["explain", "undefined-field"]);
        assert!(text.starts_with("undefined-field\n"), "{text}");
        text.lines().map(str::len).max().unwrap()
    };
    for columns in [60, 100] {
        for rows in [24, 0] {
            let widest = widest(columns, rows);
            let columns = usize::from(columns);
            assert!(
                widest <= columns && widest > columns - 15,
                "{widest} of {columns}, {rows} rows"
            );
        }
    }
    // The terminal reports no width, so lines are not wrapped.
    assert!(widest(0, 0) > 100);
}
