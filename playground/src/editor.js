// Editors of YAML, with the positions of the engine: lines and columns in code points, from 1.
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { HighlightStyle, bracketMatching, foldGutter, foldKeymap, indentOnInput, syntaxHighlighting } from '@codemirror/language';
import { lintGutter, lintKeymap, setDiagnostics } from '@codemirror/lint';
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search';
import { EditorState } from '@codemirror/state';
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';

const colors = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--key)' },
  { tag: [tags.string, tags.special(tags.string), tags.content], color: 'var(--string)' },
  { tag: [tags.comment, tags.lineComment], color: 'var(--comment)', fontStyle: 'italic' },
  { tag: [tags.keyword, tags.meta, tags.separator, tags.punctuation], color: 'var(--mark)' },
]);

const theme = EditorView.theme({
  '&': { color: 'var(--text)', backgroundColor: 'var(--field)', fontSize: '0.875rem' },
  '&.cm-focused': { outline: '2px solid var(--accent)' },
  '.cm-content': { caretColor: 'var(--text)', fontFamily: 'var(--mono)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--field)', color: 'var(--dim)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--line)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--selection)' },
  '.cm-tooltip, .cm-panels': { backgroundColor: 'var(--panel)', color: 'var(--text)', borderColor: 'var(--border)' },
  '.cm-tooltip-lint': { maxWidth: 'min(36rem, 90vw)' },
});

/** Creates an editor in an element. `change` is called after each change of the text by the user. */
export function createEditor(parent, label, change) {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      extensions: [
        lineNumbers(), foldGutter(), history(), drawSelection(), indentOnInput(), bracketMatching(),
        highlightActiveLine(), highlightSelectionMatches(), lintGutter(),
        yaml(), syntaxHighlighting(colors), theme, EditorView.lineWrapping,
        keymap.of([...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...lintKeymap]),
        EditorView.contentAttributes.of({ 'aria-label': label }),
        EditorView.updateListener.of((update) => { if (update.docChanged) change(); }),
      ],
    }),
  });
  return view;
}

/** Returns the whole text. */
export const text = (view) => view.state.doc.toString();

/** Replaces the whole text. */
export function setText(view, insert) {
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert } });
}

/** Returns the offset of a line and a column. */
export function offset(doc, line, column) {
  if (!line) return 0;
  const at = doc.line(Math.max(1, Math.min(line, doc.lines)));
  let units = 0;
  let points = 1;
  for (const char of at.text) {
    if (points >= (column ?? 1)) break;
    units += char.length;
    points += 1;
  }
  return at.from + units;
}

/** Moves the cursor to a place, scrolls there, and focuses the editor. */
export function goTo(view, line, column) {
  const anchor = offset(view.state.doc, line, column);
  view.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: 'center' }) });
  view.focus();
}

/** Applies edits of the engine. All edits refer to the text before the change. */
export function applyEdits(view, edits) {
  const doc = view.state.doc;
  view.dispatch({
    changes: edits.map((edit) => ({
      from: offset(doc, edit.line, edit.column),
      to: offset(doc, edit.endLine, edit.endColumn),
      insert: edit.text,
    })),
  });
}

/** Shows diagnostics: objects with line, column, endColumn, severity, message and actions. */
export function showDiagnostics(view, diagnostics) {
  const doc = view.state.doc;
  const all = diagnostics.map(({ line, column, endColumn, ...rest }) => {
    const from = offset(doc, line, column);
    const end = doc.lineAt(from).to;
    return { ...rest, from, to: Math.max(from, Math.min(end, offset(doc, line, endColumn))) };
  });
  view.dispatch(setDiagnostics(view.state, all.sort((a, b) => a.from - b.from)));
}
