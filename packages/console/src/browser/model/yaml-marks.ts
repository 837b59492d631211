/** A piece of a text of YAML or JSON, and what it is. */
export interface MarkedText {
  readonly text: string;
  readonly mark: 'key' | 'string' | 'literal' | 'plain';
}

/** Longer texts are shown without colors: nobody reads them, and elements are not free. */
const charactersMax = 200_000;

/**
 * A text as an encoder prints it, in pieces to color: a line's key, then its value. Joined, the
 * pieces are the text.
 */
export function marked(text: string): MarkedText[] {
  if (text.length > charactersMax) return [{ text, mark: 'plain' }];
  const pieces: MarkedText[] = [];
  for (const line of text.split(/(?<=\n)/)) {
    const found = /^([\s-]*)("(?:[^"\\]|\\.)*"|[\w./$-]+)(:)(\s.*|\s*)$/s.exec(line);
    if (found === null) {
      pieces.push(markedValue(line));
      continue;
    }
    const [, indent = '', key = '', colon = '', value = ''] = found;
    pieces.push(
      { text: indent, mark: 'plain' },
      { text: key, mark: 'key' },
      { text: colon, mark: 'plain' },
      markedValue(value),
    );
  }
  return pieces.filter((piece) => piece.text !== '');
}

function markedValue(text: string): MarkedText {
  const value = text.replace(/^[\s-]*/, '').replace(/,?\s*$/, '');
  if (/^(true|false|null|-?\d[\d.eE+-]*)$/.test(value)) return { text, mark: 'literal' };
  return { text, mark: /^[[\]{}|>+-]*$/.test(value) ? 'plain' : 'string' };
}
