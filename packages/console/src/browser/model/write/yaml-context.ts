/** What is being written at a place of a text of YAML. */
export interface YamlContext {
  /** The names of the fields around it, items of lists left out. */
  readonly path: readonly string[];
  readonly at: 'key' | 'value';
  /** The field whose value it is; empty for a key. */
  readonly name: string;
  /** What is written of it before the place, and where that begins. */
  readonly prefix: string;
  readonly from: number;
  /** In columns, of the key. */
  readonly indent: number;
  /** Names of the fields beside it. */
  readonly siblings: readonly string[];
}

interface Line {
  /** Where the text behind `- ` marks begins. */
  readonly column: number;
  readonly isItem: boolean;
  /** Undefined when the line has no key. */
  readonly key: string | undefined;
}

const keyPattern = /^("(?:[^"\\]|\\.)*"|'[^']*'|[^\s#'"[\]{},&*!|>%@`-][^:#]*?)\s*:(?=\s|$)/;

/**
 * Reads what is being written at an offset by the indentation of the lines around it: a text that is
 * being written is seldom YAML that a parser takes.
 */
export function contextAt(text: string, offset: number): YamlContext {
  const start = text.lastIndexOf('\n', offset - 1) + 1;
  const before = text.slice(start, offset);
  const [, marks = '', written = ''] = /^(\s*(?:-\s+)*)(.*)$/s.exec(before) ?? [];
  const indent = marks.length;
  const lines = text.split('\n');
  const at = text.slice(0, start).split('\n').length - 1;
  const around = surroundings(lines, at, { indent, isItem: marks.includes('-') });
  const key = keyPattern.exec(written)?.[1];
  if (key === undefined) {
    return {
      ...around,
      at: 'key',
      name: '',
      prefix: written,
      from: offset - written.length,
      indent,
    };
  }
  const value = written.slice(written.indexOf(':', key.length) + 1);
  const prefix = value.trimStart();
  const from = offset - prefix.length;
  return { ...around, at: 'value', name: unquoted(key), prefix, from, indent };
}

function surroundings(
  lines: readonly string[],
  at: number,
  own: { readonly indent: number; readonly isItem: boolean },
): Pick<YamlContext, 'path' | 'siblings'> {
  const path: string[] = [];
  const siblings: string[] = [];
  let limit = own.indent;
  let isBeside = !own.isItem;
  for (let index = at - 1; index >= 0 && limit > 0; index -= 1) {
    const line = readLine(lines[index]);
    if (line === undefined) continue;
    if (line.column < limit && line.key !== undefined) {
      path.unshift(line.key);
      limit = line.column;
      isBeside = false;
    } else if (isBeside && line.column === limit) {
      if (line.key !== undefined) siblings.push(line.key);
      isBeside = !line.isItem;
    }
  }
  const above = limit === 0 && path.length === 0 ? keysOf(lines.slice(0, at), 0) : siblings;
  return { path, siblings: [...above, ...keysBelow(lines.slice(at + 1), own.indent)] };
}

function keysOf(lines: readonly string[], column: number): string[] {
  return lines.flatMap((text) => {
    const line = readLine(text);
    return line?.key !== undefined && line.column === column ? [line.key] : [];
  });
}

/** Keys of the same object behind a line: as far as nothing stands further left, or begins an item. */
function keysBelow(lines: readonly string[], indent: number): string[] {
  const found: string[] = [];
  for (const text of lines) {
    const line = readLine(text);
    if (line === undefined) continue;
    if (line.column < indent || (line.column === indent && line.isItem)) break;
    if (line.column === indent && line.key !== undefined) found.push(line.key);
  }
  return found;
}

function readLine(text: string | undefined): Line | undefined {
  const [, spaces = '', marks = '', rest = ''] =
    /^(\s*)((?:-\s+|-$)*)(.*)$/s.exec(text ?? '') ?? [];
  if ((rest === '' && marks === '') || rest.startsWith('#')) return undefined;
  const key = keyPattern.exec(rest)?.[1];
  return {
    column: spaces.length + marks.length,
    isItem: marks !== '',
    key: key === undefined ? undefined : unquoted(key),
  };
}

function unquoted(key: string): string {
  return /^(["']).*\1$/.test(key) ? key.slice(1, -1) : key;
}
