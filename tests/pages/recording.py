"""Records commands of the plugin as an animated SVG. The output is that of the program, with its colors.

usage: recording.py PROGRAM FILE.svg
"""

import html
import os
import re
import subprocess
import sys

# The commands, each with the directory in which it runs.
COMMANDS = [
    ("config/samples", "kubectl vap check misspelt_field.yaml no_such_resource.yaml"),
    ("docs/examples", "kubectl vap eval replica-limit.yaml -f web.yaml"),
    ("docs/examples", "kubectl vap diff replica-limit.yaml replica-limit-new.yaml -f manifests.yaml"),
]
COLUMNS = 100
# Size of a character, of a line and of the margin, in pixels.
WIDTH, HEIGHT, MARGIN = 8.43, 19, 16
# Duration of a scene in seconds: a part for the reader, and a part for each line.
BASE_TIME, LINE_TIME = 4, 0.4
COLORS = {31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#76e3ea", 90: "#8b949e"}
ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")


def run(program, directory, command):
    """Returns the lines of a command's output."""
    words = command.split()
    assert words[:2] == ["kubectl", "vap"], command
    environment = {"PATH": os.environ["PATH"], "COLUMNS": str(COLUMNS), "KUBECONFIG": "/dev/null"}
    result = subprocess.run(
        [os.path.abspath(program), "--color=always", *words[2:]],
        capture_output=True, text=True, env=environment, cwd=directory, check=False,
    )
    assert result.returncode in (0, 1), result
    return (result.stdout + result.stderr).rstrip("\n").split("\n")


def wrapped(line):
    """Splits a line at the width of the terminal. Escape sequences have no width."""
    rows, width = [""], 0
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if ESCAPE.fullmatch(part):
            rows[-1] += part
            continue
        for character in part:
            if width == COLUMNS:
                rows.append("")
                width = 0
            rows[-1] += character
            width += 1
    return rows


def spans(row, style):
    """Returns a line as SVG, and the style after it. A style is a color and the weight."""
    result = []
    for index, part in enumerate(ESCAPE.split(row)):
        if index % 2:
            for code in (int(code or 0) for code in part.split(";")):
                color, bold = style
                if code == 0:
                    style = (None, False)
                elif code == 1:
                    style = (color, True)
                elif code == 22:
                    style = (color, False)
                elif code == 39:
                    style = (None, bold)
                elif code in COLORS or code - 60 in COLORS:
                    style = (COLORS.get(code, COLORS.get(code - 60)), bold)
        elif part:
            color, bold = style
            attributes = (f' fill="{color}"' if color else "") + (' font-weight="bold"' if bold else "")
            text = html.escape(part, quote=False)
            result.append(f"<tspan{attributes}>{text}</tspan>" if attributes else text)
    return "".join(result), style


def scene(command, lines):
    """Returns the lines of a scene as SVG."""
    rows = [f"\x1b[32m$\x1b[0m \x1b[1m{part}\x1b[0m" if n == 0 else part for n, part in enumerate(wrapped("  " + command))]
    rows[0] = rows[0].replace("  kubectl", "kubectl", 1)
    for line in lines:
        rows.extend(wrapped(line))
    style, texts = (None, False), []
    for n, row in enumerate(rows):
        text, style = spans(row, style)
        if text:
            texts.append(f'<text y="{MARGIN + 24 + (n + 1) * HEIGHT}">{text}</text>')
    return texts, len(rows)


def main(program, path):
    """Writes the SVG."""
    scenes = [scene(command, run(program, directory, command)) for directory, command in COMMANDS]
    times = [BASE_TIME + LINE_TIME * n_rows for _, n_rows in scenes]
    total = sum(times)
    width = round(COLUMNS * WIDTH + 2 * MARGIN)
    height = max(n_rows for _, n_rows in scenes) * HEIGHT + 2 * MARGIN + 30
    styles, groups, start = [], [], 0.0
    for n, ((texts, _), time) in enumerate(zip(scenes, times)):
        begin, end = 100 * start / total, 100 * (start + time) / total
        before = f"0%{{opacity:0}}{begin:.2f}%{{opacity:0}}" if n else "0%{opacity:1}"
        after = f"{end:.2f}%{{opacity:0}}100%{{opacity:0}}" if n + 1 < len(scenes) else "100%{opacity:1}"
        styles.append(
            f"@keyframes s{n}{{{before}{begin + 0.01:.2f}%{{opacity:1}}{end - 0.01:.2f}%{{opacity:1}}{after}}}"
            f".s{n}{{animation:s{n} {total:.1f}s infinite;{'' if n == 0 else 'opacity:0'}}}"
        )
        groups.append(f'<g class="s{n}" transform="translate({MARGIN} 0)">\n' + "\n".join(texts) + "\n</g>")
        start += time
    # Readers who prefer no motion see the first scene.
    styles.append("@media (prefers-reduced-motion:reduce){g{animation:none!important}}")
    title = "kubectl vap: " + ", ".join(command.split()[2] for _, command in COMMANDS)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width} {height}" font-size="14" role="img" '
        f'font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace" aria-labelledby="title">\n'
        f'<!-- Generated by `./dev recording`. -->\n<title id="title">{html.escape(title)}</title>\n'
        f"<style>text{{white-space:pre;fill:#e6edf3}}{''.join(styles)}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>\n'
        '<g fill="#484f58"><circle cx="20" cy="18" r="6"/><circle cx="40" cy="18" r="6"/><circle cx="60" cy="18" r="6"/></g>\n'
        + "\n".join(groups)
        + "\n</svg>\n"
    )
    with open(path, "w", encoding="utf-8") as file:
        file.write(svg)


if __name__ == "__main__":
    main(*sys.argv[1:])
