//! Tests the messages of the API server's parser: the column and the message of each error, in order of location.

use crate::findings;
use cel::version::{Behavior, CelGo};

/// Tokens that may start an operand. The expected messages abbreviate this list.
const OPERAND: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

const ROWS: &[(&str, &str)] = &[
    (
        ",)+! in ?",
        "0: mismatched input ',' expecting OPERAND ## 5: extraneous input 'in' expecting OPERAND ## 8: mismatched input '?' expecting OPERAND ## 9: mismatched input '<EOF>' expecting OPERAND",
    ),
    (
        "[1A.b{ 2].map(x, x)",
        "2: mismatched input 'A' expecting {']', ','} ## 5: mismatched input '{' expecting <EOF>",
    ),
    (".b[0].c", ""),
    (
        "<",
        "0: mismatched input '<' expecting OPERAND ## 1: mismatched input '<EOF>' expecting OPERAND",
    ),
    ("f(a,)b)", "4: extraneous input ')' expecting OPERAND"),
    ("a.?b[?]", "6: mismatched input ']' expecting OPERAND"),
    (" true A.b{", "6: mismatched input 'A' expecting <EOF>"),
    ("a  b : c", "3: mismatched input 'b' expecting <EOF>"),
    (
        "a.b[:0].c",
        "4: extraneous input ':' expecting {'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    ),
    (
        "#.",
        "0: token recognition error at: '#' ## 2: no viable alternative at input '.'",
    ),
    ("[1,= 2].map(x, x)", "3: token recognition error at: '= '"),
    (
        " null  if ,2u}\u{e9}",
        "7: mismatched input 'if' expecting <EOF> ## 14: token recognition error at: '\u{e9}'",
    ),
    ("a ? b : c", ""),
    (
        "[(a, b)",
        "3: missing ')' at ',' ## 6: mismatched input ')' expecting {']', ','}",
    ),
    (
        " in *} in .2u",
        "1: mismatched input 'in' expecting OPERAND ## 4: mismatched input '*' expecting OPERAND ## 5: mismatched input '}' expecting OPERAND ## 12: extraneous input 'u' expecting <EOF>",
    ),
    (
        "a ? b&& : c",
        "8: extraneous input ':' expecting OPERAND ## 11: mismatched input '<EOF>' expecting ':'",
    ),
    ("A-1{b: 1}", "3: mismatched input '{' expecting <EOF>"),
    (
        "|&{k:",
        "0: token recognition error at: '|&' ## 5: mismatched input '<EOF>' expecting OPERAND",
    ),
    (
        "[1, 2 if .map(x, x)",
        "6: mismatched input 'if' expecting {']', ','}",
    ),
    ("f(a b)", "4: extraneous input 'b' expecting ')'"),
    (
        "+a.b.c|\u{e9}",
        "0: extraneous input '+' expecting OPERAND ## 6: token recognition error at: '|\u{e9}'",
    ),
    (
        "f(], b)",
        "2: mismatched input ']' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    ),
    ("f(a, b", "6: missing ')' at '<EOF>'"),
    (
        "1.5+{",
        "5: mismatched input '<EOF>' expecting {'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    ),
    (
        "f(a, ')",
        "5: token recognition error at: '')' ## 7: mismatched input '<EOF>' expecting OPERAND",
    ),
    ("f(a1.5 b)", "4: mismatched input '.5' expecting ')'"),
    (
        " null :-?!\u{e9}",
        "6: mismatched input ':' expecting <EOF> ## 10: token recognition error at: '\u{e9}'",
    ),
    ("a.?b[?A.b{c]", "11: mismatched input ']' expecting ':'"),
    ("a.b?[0].c", "9: mismatched input '<EOF>' expecting ':'"),
    ("b'x'}],:", "4: mismatched input '}' expecting <EOF>"),
    (
        "{'a': f(}",
        "8: mismatched input '}' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    ),
    (
        "[?-\u{e9}(",
        "3: token recognition error at: '\u{e9}' ## 5: mismatched input '<EOF>' expecting OPERAND",
    ),
    (
        "[1, 2].m{k:p(x, x)",
        "8: mismatched input '{' expecting <EOF>",
    ),
    (
        "A{: 1}",
        "2: mismatched input ':' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
    ),
    (
        "&& null (-",
        "0: extraneous input '&&' expecting OPERAND ## 8: mismatched input '(' expecting <EOF>",
    ),
    ("a?b[?c]", "7: mismatched input '<EOF>' expecting ':'"),
    (
        "a ? b : f(",
        "10: mismatched input '<EOF>' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    ),
    (":1", "0: extraneous input ':' expecting OPERAND"),
    ("f('a': 1}", "5: mismatched input ':' expecting ')'"),
    (",A{b: 1}", "0: extraneous input ',' expecting OPERAND"),
    (
        "%!]",
        "0: extraneous input '%' expecting OPERAND ## 2: extraneous input ']' expecting OPERAND",
    ),
    (
        "}(a, b)",
        "0: extraneous input '}' expecting OPERAND ## 3: mismatched input ',' expecting ')'",
    ),
    (
        "!a && b | c",
        "8: token recognition error at: '| ' ## 10: extraneous input 'c' expecting <EOF>",
    ),
    ("?-1", "0: extraneous input '?' expecting OPERAND"),
    ("!a-&& b || c", "3: extraneous input '&&' expecting OPERAND"),
    (
        "a.?b[?<]",
        "6: mismatched input '<' expecting OPERAND ## 7: mismatched input ']' expecting OPERAND",
    ),
    (
        "|==%1.5-1",
        "0: token recognition error at: '|=' ## 2: token recognition error at: '=%'",
    ),
    (
        "A{b: true  1}",
        "11: extraneous input '1' expecting {'}', ','}",
    ),
    ("[1, 2].ap(x, x)", ""),
    (
        "#",
        "0: token recognition error at: '#' ## 1: mismatched input '<EOF>' expecting OPERAND",
    ),
    ("a == in 1", "5: extraneous input 'in' expecting OPERAND"),
    ("1 + 2 * (3 - a)", ""),
    ("a.b.c", ""),
    (" == 1", "1: extraneous input '==' expecting OPERAND"),
    (".?a == 1", "1: no viable alternative at input '.?'"),
    ("+-1", "0: extraneous input '+' expecting OPERAND"),
    ("{'a': 1!", "7: mismatched input '!' expecting {'}', ','}"),
    ("a==..", "4: no viable alternative at input '..'"),
    ("a.b[0]a.c", "6: mismatched input 'a' expecting <EOF>"),
    (
        "&a && b || c",
        "0: token recognition error at: '&a' ## 3: extraneous input '&&' expecting OPERAND",
    ),
    (
        "{k:.]1.5#.",
        "4: no viable alternative at input '.]' ## 8: token recognition error at: '#'",
    ),
    ("fa, b)", "2: mismatched input ',' expecting <EOF>"),
    ("a.b?b[?c]", "9: mismatched input '<EOF>' expecting ':'"),
    ("+ null ", "0: extraneous input '+' expecting OPERAND"),
    (".?b[?c]", "1: no viable alternative at input '.?'"),
    (
        "!a 1.5&& b || c",
        "3: mismatched input '1.5' expecting <EOF>",
    ),
    (
        "a = 1",
        "2: token recognition error at: '= ' ## 4: extraneous input '1' expecting <EOF>",
    ),
    ("2u", ""),
    ("a ? bb : c", ""),
    ("a.?b[?c:", "7: mismatched input ':' expecting ']'"),
    (
        "*<",
        "0: mismatched input '*' expecting OPERAND ## 1: mismatched input '<' expecting OPERAND ## 2: mismatched input '<EOF>' expecting OPERAND",
    ),
    ("a ==  if ", "6: reserved identifier: if"),
    (
        "A.b{",
        "4: mismatched input '<EOF>' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
    ),
    ("!a && b &&| c", "10: token recognition error at: '| '"),
    (
        "|| == 1",
        "0: mismatched input '||' expecting OPERAND ## 3: extraneous input '==' expecting OPERAND",
    ),
    (
        "f(",
        "2: mismatched input '<EOF>' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    ),
    (
        "[1, 2].1.5ap(x, x)",
        "6: mismatched input '.1' expecting <EOF>",
    ),
    (
        "[1, 2].A.b{ap(x, x)",
        "10: mismatched input '{' expecting <EOF>",
    ),
    ("-1 + 2 * (- - a)", ""),
    ("-1.5", ""),
    (
        "{'a' null  1}",
        "5: missing ':' at 'null' ## 11: extraneous input '1' expecting {'}', ','}",
    ),
    ("{b: 1}", ""),
    ("a.?b?c]", "6: mismatched input ']' expecting ':'"),
    ("{!'a': 1}", ""),
    (
        "*&& true ",
        "0: mismatched input '*' expecting OPERAND ## 1: extraneous input '&&' expecting OPERAND",
    ),
    ("a.?bhas(?c]", "7: mismatched input '(' expecting <EOF>"),
    (
        "[1, 2].map(x,+x)",
        "13: extraneous input '+' expecting OPERAND",
    ),
    ("a.b.c-", "6: mismatched input '<EOF>' expecting OPERAND"),
    (
        "{'a': 1\u{e9}",
        "7: token recognition error at: '\u{e9}' ## 8: mismatched input '<EOF>' expecting {'}', ','}",
    ),
    (",.b[0].c", "0: extraneous input ',' expecting OPERAND"),
    (
        "|",
        "0: token recognition error at: '|' ## 1: mismatched input '<EOF>' expecting OPERAND",
    ),
    ("1'a': 1}", "1: mismatched input ''a'' expecting <EOF>"),
    ("-1 +b2 * (3 - a)", ""),
    ("f-1a, b)", "3: mismatched input 'a' expecting <EOF>"),
    (
        "=",
        "0: token recognition error at: '=' ## 1: mismatched input '<EOF>' expecting OPERAND",
    ),
    (
        "a.!?b[?c]",
        "2: no viable alternative at input '.!' ## 9: mismatched input '<EOF>' expecting ':'",
    ),
    ("{'a': }", "6: mismatched input '}' expecting OPERAND"),
    (
        "||",
        "0: mismatched input '||' expecting OPERAND ## 2: mismatched input '<EOF>' expecting OPERAND",
    ),
    ("A{b: 1-1}", ""),
    (
        "f|(a, b)",
        "1: token recognition error at: '|(' ## 3: mismatched input 'a' expecting <EOF>",
    ),
    ("a== == 1", "4: extraneous input '==' expecting OPERAND"),
    (
        "!a & in & b || c",
        "3: token recognition error at: '& ' ## 8: token recognition error at: '& '",
    ),
    (")-1", "0: extraneous input ')' expecting OPERAND"),
    (
        "f(+a, b)",
        "2: extraneous input '+' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    ),
    (
        "[1, 2].map({k:x, x)",
        "18: mismatched input ')' expecting ':'",
    ),
    (
        "[1, 2A.b{].map(x, x)",
        "5: mismatched input 'A' expecting {']', ','} ## 8: mismatched input '{' expecting <EOF>",
    ),
    ("a? b : c", ""),
    (
        "b='bf(",
        "1: token recognition error at: '='' ## 3: mismatched input 'bf' expecting <EOF>",
    ),
    ("-1 + 2 *(3 - a)", ""),
    ("b", ""),
    (
        "a ==&1",
        "4: token recognition error at: '&1' ## 6: mismatched input '<EOF>' expecting OPERAND",
    ),
    ("f(a{, b)", "6: mismatched input 'b' expecting '}'"),
    (
        "a.?b[?'c]",
        "6: token recognition error at: ''c]' ## 9: mismatched input '<EOF>' expecting OPERAND",
    ),
    ("==a", "0: extraneous input '==' expecting OPERAND"),
    ("a.has([0].c", "11: missing ')' at '<EOF>'"),
    (
        "-1 + 2 * (3 \u{e9}- a)",
        "12: token recognition error at: '\u{e9}'",
    ),
    (
        "%",
        "0: mismatched input '%' expecting OPERAND ## 1: mismatched input '<EOF>' expecting OPERAND",
    ),
    ("a ? b  c", "7: missing ':' at 'c'"),
    ("-1 + 2 * ( null  - a)", ""),
    (
        " true &<.?",
        "6: token recognition error at: '&<' ## 10: mismatched input '<EOF>' expecting {IDENTIFIER, ESC_IDENTIFIER} ## 10: unsupported ident kind",
    ),
    ("!a-1&& b || c", ""),
    (
        "[1, 2].map}(x, x)",
        "10: mismatched input '}' expecting <EOF>",
    ),
    (
        "&%",
        "0: token recognition error at: '&%' ## 2: mismatched input '<EOF>' expecting OPERAND",
    ),
    ("a== 1", ""),
    ("-1 + 2 * (3  a)", "13: extraneous input 'a' expecting ')'"),
    ("!a :&& b || c", "3: mismatched input ':' expecting <EOF>"),
    (
        "|(.b in ||",
        "0: token recognition error at: '|(' ## 8: mismatched input '||' expecting OPERAND ## 10: mismatched input '<EOF>' expecting OPERAND",
    ),
    ("\u{e9}a.?b[?c]", "0: token recognition error at: '\u{e9}'"),
    (" null -1", ""),
    ("a.?b[ true c]", "11: extraneous input 'c' expecting ']'"),
    (
        "-1 + 2 * (3 -\u{e9}a)",
        "13: token recognition error at: '\u{e9}'",
    ),
    (
        "&&'s' true -",
        "0: extraneous input '&&' expecting OPERAND ## 6: mismatched input 'true' expecting <EOF>",
    ),
    (
        "f([?, b)",
        "4: extraneous input ',' expecting OPERAND ## 7: mismatched input ')' expecting {']', ','}",
    ),
    ("!a +& b || c", "4: token recognition error at: '& '"),
    ("A{b:} 1}", "4: extraneous input '}' expecting OPERAND"),
    ("a.b[0 if ].c", "6: extraneous input 'if' expecting ']'"),
    ("<!a && b || c", "0: extraneous input '<' expecting OPERAND"),
    (
        "2uA.b{|)",
        "2: mismatched input 'A' expecting <EOF> ## 6: token recognition error at: '|)'",
    ),
    ("-1 + 2 * (3 - a()", "17: missing ')' at '<EOF>'"),
    ("A{b: 12u}", ""),
    (
        "!a & b || c",
        "3: token recognition error at: '& ' ## 5: mismatched input 'b' expecting <EOF>",
    ),
    ("a.true", "2: mismatched input 'true' expecting IDENTIFIER"),
    (
        "a.in",
        "2: no viable alternative at input '.in' ## 4: mismatched input '<EOF>' expecting OPERAND",
    ),
    (
        "in",
        "0: mismatched input 'in' expecting OPERAND ## 2: mismatched input '<EOF>' expecting OPERAND",
    ),
    (
        "a = b",
        "2: token recognition error at: '= ' ## 4: extraneous input 'b' expecting <EOF>",
    ),
    (
        "a & b",
        "2: token recognition error at: '& ' ## 4: extraneous input 'b' expecting <EOF>",
    ),
    (
        "a | b",
        "2: token recognition error at: '| ' ## 4: extraneous input 'b' expecting <EOF>",
    ),
    ("a ! b", "2: mismatched input '!' expecting <EOF>"),
    ("a b", "2: extraneous input 'b' expecting <EOF>"),
    ("a 1", "2: extraneous input '1' expecting <EOF>"),
    ("1 a", "2: extraneous input 'a' expecting <EOF>"),
    ("(", "1: mismatched input '<EOF>' expecting OPERAND"),
    ("((", "2: mismatched input '<EOF>' expecting OPERAND"),
    (
        "[",
        "1: mismatched input '<EOF>' expecting {'[', ']', '{', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    ),
    (
        "{",
        "1: mismatched input '<EOF>' expecting {'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    ),
    ("a.", "2: no viable alternative at input '.'"),
    (
        "a[",
        "2: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    ),
    ("a?", "2: mismatched input '<EOF>' expecting OPERAND"),
    ("a?b", "3: mismatched input '<EOF>' expecting ':'"),
    ("a ? b :", "7: mismatched input '<EOF>' expecting OPERAND"),
    (")", "0: mismatched input ')' expecting OPERAND"),
    ("]", "0: mismatched input ']' expecting OPERAND"),
    ("}", "0: mismatched input '}' expecting OPERAND"),
    ("a)", "1: extraneous input ')' expecting <EOF>"),
    ("a]", "1: extraneous input ']' expecting <EOF>"),
    ("a}", "1: extraneous input '}' expecting <EOF>"),
    ("[1", "2: mismatched input '<EOF>' expecting {']', ','}"),
    ("[1,", "3: missing ']' at '<EOF>'"),
    ("[,", "2: missing ']' at '<EOF>'"),
    ("[,1]", "2: extraneous input '1' expecting ']'"),
    ("[1,,2]", "3: mismatched input ',' expecting ']'"),
    ("[1 2]", "3: extraneous input '2' expecting {']', ','}"),
    ("{a", "2: mismatched input '<EOF>' expecting ':'"),
    ("{a:", "3: mismatched input '<EOF>' expecting OPERAND"),
    ("{a:1", "4: mismatched input '<EOF>' expecting {'}', ','}"),
    ("{a:1,", "5: missing '}' at '<EOF>'"),
    ("{a 1}", "3: missing ':' at '1'"),
    ("{,}", ""),
    (
        "A{",
        "2: mismatched input '<EOF>' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
    ),
    ("A{a", "3: mismatched input '<EOF>' expecting ':'"),
    ("A{a:", "4: mismatched input '<EOF>' expecting OPERAND"),
    ("A{a:1", "5: mismatched input '<EOF>' expecting {'}', ','}"),
    ("A{a:1,", "6: missing '}' at '<EOF>'"),
    (
        "A{1:2}",
        "2: mismatched input '1' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
    ),
    (
        "A{'a':1}",
        "2: mismatched input ''a'' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
    ),
    (
        "f(,)",
        "2: extraneous input ',' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    ),
    ("f(a,)", "4: mismatched input ')' expecting OPERAND"),
    (
        "a.b(",
        "4: mismatched input '<EOF>' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    ),
    ("a.1", "1: extraneous input '.1' expecting <EOF>"),
    ("a..b", "2: no viable alternative at input '..'"),
    (
        "a.?",
        "3: mismatched input '<EOF>' expecting {IDENTIFIER, ESC_IDENTIFIER} ## 3: unsupported ident kind",
    ),
    (
        "a.?1",
        "3: mismatched input '1' expecting {IDENTIFIER, ESC_IDENTIFIER} ## 3: unsupported ident kind",
    ),
    ("a[?", "3: mismatched input '<EOF>' expecting OPERAND"),
    ("a[?]", "3: mismatched input ']' expecting OPERAND"),
    (
        "a[]",
        "2: mismatched input ']' expecting {'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    ),
    ("--1", ""),
    ("!!a", ""),
    ("-!a", "1: no viable alternative at input '-!'"),
    ("!-a", "2: no viable alternative at input '-a'"),
    ("a - - b", ""),
    ("a ** b", "3: extraneous input '*' expecting OPERAND"),
    ("a <> b", "3: extraneous input '>' expecting OPERAND"),
    ("a === b", "4: token recognition error at: '= '"),
    ("a != = b", "5: token recognition error at: '= '"),
    ("a && || b", "5: extraneous input '||' expecting OPERAND"),
    ("|| a", "0: extraneous input '||' expecting OPERAND"),
    ("&& a", "0: extraneous input '&&' expecting OPERAND"),
    ("== a", "0: extraneous input '==' expecting OPERAND"),
    ("in a", "0: extraneous input 'in' expecting OPERAND"),
    ("a in", "4: mismatched input '<EOF>' expecting OPERAND"),
    ("a in in b", "5: extraneous input 'in' expecting OPERAND"),
    ("1.", "2: no viable alternative at input '.'"),
    ("1.a", ""),
    (".1.", "3: no viable alternative at input '.'"),
    ("0x", "1: extraneous input 'x' expecting <EOF>"),
    ("1u2", "2: extraneous input '2' expecting <EOF>"),
    (
        "'a",
        "0: token recognition error at: ''a' ## 2: mismatched input '<EOF>' expecting OPERAND",
    ),
    (
        "\"a",
        "0: token recognition error at: '\"a' ## 2: mismatched input '<EOF>' expecting OPERAND",
    ),
    ("'''a", "2: token recognition error at: ''a'"),
    ("r'a", "1: token recognition error at: ''a'"),
    ("b'a", "1: token recognition error at: ''a'"),
    (
        "'a\\q'",
        "0: token recognition error at: ''a\\q' ## 4: token recognition error at: ''' ## 5: mismatched input '<EOF>' expecting OPERAND",
    ),
    ("@a", "0: token recognition error at: '@'"),
    (
        "$",
        "0: token recognition error at: '$' ## 1: mismatched input '<EOF>' expecting OPERAND",
    ),
    (
        "a@b",
        "1: token recognition error at: '@' ## 2: extraneous input 'b' expecting <EOF>",
    ),
    ("~a", "0: token recognition error at: '~'"),
    (
        "a;b",
        "1: token recognition error at: ';' ## 2: extraneous input 'b' expecting <EOF>",
    ),
    (
        "a\\b",
        "1: token recognition error at: '\\' ## 2: extraneous input 'b' expecting <EOF>",
    ),
    (
        "/* a */",
        "0: mismatched input '/' expecting OPERAND ## 1: extraneous input '*' expecting OPERAND ## 6: mismatched input '/' expecting OPERAND ## 7: mismatched input '<EOF>' expecting OPERAND",
    ),
    ("// a", "4: mismatched input '<EOF>' expecting OPERAND"),
    ("", "-1: mismatched input '<EOF>' expecting OPERAND"),
    ("  ", "2: mismatched input '<EOF>' expecting OPERAND"),
    ("a.if", ""),
    ("if", "0: reserved identifier: if"),
    ("for", "0: reserved identifier: for"),
    ("a.for(b)", ""),
    ("`a`", "0: mismatched input '`a`' expecting OPERAND"),
    (
        "a.`b",
        "2: token recognition error at: '`b' ## 4: no viable alternative at input '.'",
    ),
    ("`a-b`", "0: mismatched input '`a-b`' expecting OPERAND"),
    (
        "{`a`: 1}",
        "1: mismatched input '`a`' expecting {'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    ),
    (
        "[?a, ?b",
        "7: mismatched input '<EOF>' expecting {']', ','}",
    ),
    ("{?a}", "3: mismatched input '}' expecting ':'"),
    ("{?a:1", "5: mismatched input '<EOF>' expecting {'}', ','}"),
    ("A{?a}", "4: mismatched input '}' expecting ':'"),
    ("?a", "0: extraneous input '?' expecting OPERAND"),
    (
        "a ? : c",
        "4: extraneous input ':' expecting OPERAND ## 7: mismatched input '<EOF>' expecting ':'",
    ),
    ("a ? b c", "6: missing ':' at 'c'"),
    ("a ? b : c : d", "10: mismatched input ':' expecting <EOF>"),
    ("1 + ", "4: mismatched input '<EOF>' expecting OPERAND"),
    ("1 + + 2", "4: extraneous input '+' expecting OPERAND"),
    ("* 1", "0: extraneous input '*' expecting OPERAND"),
    ("1 *", "3: mismatched input '<EOF>' expecting OPERAND"),
    ("a.b.", "4: no viable alternative at input '.'"),
    (
        "a.b.c{",
        "6: mismatched input '<EOF>' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
    ),
    ("a.b().c{}", "7: mismatched input '{' expecting <EOF>"),
    ("a[0]{}", "4: mismatched input '{' expecting <EOF>"),
    ("(a).b{", "5: extraneous input '{' expecting <EOF>"),
    ("1{}", "1: mismatched input '{' expecting <EOF>"),
    ("'a'{}", "3: mismatched input '{' expecting <EOF>"),
    ("null{}", "4: mismatched input '{' expecting <EOF>"),
    ("true.a", ""),
    ("null.a", ""),
    ("1.a()", ""),
    ("a.b{}.c{}", "7: mismatched input '{' expecting <EOF>"),
    ("(a", "2: missing ')' at '<EOF>'"),
    ("(a b)", "3: extraneous input 'b' expecting ')'"),
    ("((a)", "4: missing ')' at '<EOF>'"),
    ("(a))", "3: extraneous input ')' expecting <EOF>"),
    ("()", "1: mismatched input ')' expecting OPERAND"),
    ("a()", ""),
    ("a()()", "3: mismatched input '(' expecting <EOF>"),
    ("f(a)(b)", "4: mismatched input '(' expecting <EOF>"),
];

#[test]
fn findings_have_upstream_messages() {
    for (text, expected) in ROWS {
        let diagnostics = findings(text, Behavior::new(CelGo::V0_26));
        let errors = diagnostics.as_slice().iter().map(|error| {
            let message = error.kind.to_string();
            let message = message
                .replace("Syntax error: ", "")
                .replace(OPERAND, "OPERAND");
            format!("{}: {message}", error.location.column)
        });
        assert_eq!(errors.collect::<Vec<_>>().join(" ## "), *expected, "{text}");
    }
}
