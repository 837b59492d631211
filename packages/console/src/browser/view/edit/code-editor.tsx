import {
  acceptCompletion,
  autocompletion,
  type CompletionContext,
  type CompletionResult,
  completionKeymap,
} from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import {
  bracketMatching,
  foldGutter,
  foldKeymap,
  type IndentContext,
  indentService,
  syntaxHighlighting,
} from '@codemirror/language';
import { type Diagnostic, lintKeymap, setDiagnostics } from '@codemirror/lint';
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search';
import { EditorState, type Extension } from '@codemirror/state';
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  hoverTooltip,
  keymap,
  lineNumbers,
  type Tooltip,
} from '@codemirror/view';
import { classHighlighter } from '@lezer/highlight';
import { useEffect, useRef } from 'preact/hooks';
import type { EditFault } from '../../model/editing.ts';
import type { Completions } from '../../model/write/assist.ts';

/** The contents of a tooltip. */
export interface HoverText {
  readonly title: string;
  readonly lines: readonly string[];
}

/** The properties of an editor. */
interface CodeEditorProps {
  readonly label: string;
  readonly text: string;
  /** Changes whenever the text is replaced by something other than this editor. */
  readonly replacements: number;
  readonly faults: readonly EditFault[];
  readonly completions: (text: string, offset: number) => Completions | undefined;
  readonly hover: (text: string, offset: number) => HoverText | undefined;
  readonly onText: (text: string) => void;
  readonly onPlace: (offset: number) => void;
  /** A line to scroll to, starting at 1; each new object triggers a scroll. */
  readonly goTo: { readonly line: number } | undefined;
}

/** A YAML editor with completion, explanations, and diagnostics. */
export function CodeEditor(props: CodeEditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const { replacements, faults, goTo } = props;
  useEffect(() => {
    const { current: parent } = place;
    if (parent === null) return;
    const editor = new EditorView({
      parent,
      state: EditorState.create({ doc: latest.current.text, extensions: extensionsFor(latest) }),
    });
    view.current = editor;
    return () => editor.destroy();
  }, []);
  useEffect(() => {
    const { current } = view;
    const { text: insert } = latest.current;
    if (current === undefined || current.state.doc.toString() === insert) return;
    current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert } });
    // Typed text comes from this editor; setting it again would undo newer input.
  }, [replacements]);
  useEffect(() => {
    const { current } = view;
    current?.dispatch(setDiagnostics(current.state, diagnosticsOf(current.state, faults)));
  }, [faults]);
  useEffect(() => {
    const { current } = view;
    if (current === undefined || goTo === undefined) return;
    const { from, to } = current.state.doc.line(
      Math.max(1, Math.min(goTo.line, current.state.doc.lines)),
    );
    current.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true });
    current.focus();
  }, [goTo]);
  return <div class="code" ref={place} />;
}

function extensionsFor(latest: { readonly current: CodeEditorProps }): Extension[] {
  return [
    lineNumbers(),
    highlightActiveLineGutter(),
    foldGutter(),
    history(),
    drawSelection(),
    indentService.of(indentOfNext),
    bracketMatching(),
    highlightActiveLine(),
    highlightSelectionMatches(),
    yaml(),
    syntaxHighlighting(classHighlighter),
    EditorState.tabSize.of(2),
    EditorView.contentAttributes.of({
      'aria-label': latest.current.label,
      spellcheck: 'false',
      tabindex: '0',
    }),
    autocompletion({ override: [(context) => complete(latest.current, context)], icons: false }),
    hoverTooltip((view, offset) => tooltipAt(latest.current, view, offset)),
    EditorView.updateListener.of((update) => {
      const { onText, onPlace } = latest.current;
      if (update.docChanged) onText(update.state.doc.toString());
      if (update.docChanged || update.selectionSet) onPlace(update.state.selection.main.head);
    }),
    keymap.of([
      // The editor's page validates; by default, the key would insert a line.
      { key: 'Mod-Enter', run: () => true },
      { key: 'Tab', run: acceptCompletion },
      ...completionKeymap,
      ...lintKeymap,
      ...searchKeymap,
      ...foldKeymap,
      ...historyKeymap,
      ...defaultKeymap,
      indentWithTab,
    ]),
  ];
}

/** Indents a new line like the previous one, or deeper if that one opens a field. */
function indentOfNext(context: IndentContext, offset: number): number | null {
  const { text } = context.lineAt(offset, -1);
  const [, spaces = '', marks = '', rest = ''] = /^(\s*)((?:-\s+)*)(.*)$/.exec(text) ?? [];
  const column = spaces.length + marks.length;
  return /:\s*$/.test(rest) ? column + 2 : column;
}

function complete(props: CodeEditorProps, context: CompletionContext): CompletionResult | null {
  const completions = props.completions(context.state.doc.toString(), context.pos);
  if (completions === undefined || completions.options.length === 0) return null;
  // Cursor movement alone must not open the completion list.
  if (!context.explicit && context.pos === completions.from && !isAfterKey(context)) return null;
  return {
    from: completions.from,
    validFor: /^[\w.-]*$/,
    options: completions.options.map((option) => ({
      label: option.label,
      detail: option.detail,
      apply: option.text,
      type: option.type,
      boost: option.isRequired ? 1 : 0,
      ...(option.description === '' ? {} : { info: option.description }),
    })),
  };
}

/** Whether the cursor follows `name: `, where value completion opens immediately. */
function isAfterKey({ state, pos }: CompletionContext): boolean {
  return /:\s$/.test(state.doc.sliceString(Math.max(0, pos - 2), pos));
}

function tooltipAt(props: CodeEditorProps, view: EditorView, offset: number): Tooltip | null {
  const hover = props.hover(view.state.doc.toString(), offset);
  if (hover === undefined) return null;
  return {
    pos: offset,
    above: true,
    create: () => {
      const dom = document.createElement('div');
      dom.className = 'hover-text';
      const title = document.createElement('strong');
      title.textContent = hover.title;
      const lines = hover.lines.map((line) => {
        const paragraph = document.createElement('p');
        paragraph.textContent = line;
        return paragraph;
      });
      dom.append(title, ...lines);
      return { dom };
    },
  };
}

function diagnosticsOf(state: EditorState, faults: readonly EditFault[]): Diagnostic[] {
  return faults.flatMap(({ field, message, line }): Diagnostic[] => {
    if (line === undefined || line > state.doc.lines || line < 1) return [];
    const { from, to, text } = state.doc.line(line);
    const indent = text.length - text.trimStart().length;
    const words = field === '' ? message : `${field}: ${message}`;
    return [{ from: Math.min(from + indent, to), to, severity: 'error', message: words }];
  });
}
