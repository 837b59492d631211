/** A file of descriptions: its text and the group whose types it describes. */
interface DescriptionFile {
  readonly group: string;
  readonly text: string;
}

interface TypeLines {
  own: string | undefined;
  /** The type that describes the fields without a line here. */
  others: string | undefined;
  readonly fields: Map<string, string>;
}

/** Maximum length of a chain of types that take their fields from one another. */
const depthMax = 4;

/**
 * Joins description files into the form that the server reads, which parses quickly: a line for
 * each type, with tabs between the texts. `core.Pod`, its own text, then each field and its text.
 *
 * The lines of a file are `Type: text` and `Type.field: text`. A text `=Type` or `=Type.field`
 * refers to the text of another line, and `Type.*: =Other` takes the fields without a line from
 * another type; a type of another group is qualified (`=meta.Condition`). Throws for malformed
 * lines, duplicate lines, and dangling references.
 */
export function resolvedDescriptions(files: readonly DescriptionFile[]): string {
  const types = new Map<string, TypeLines>();
  for (const { group, text } of files) {
    for (const line of text.split('\n')) {
      if (line !== '') addLine(types, group, line);
    }
  }
  return [...types].map(([name, lines]) => typeLine(types, name, lines)).join('\n');
}

function addLine(types: Map<string, TypeLines>, group: string, line: string): void {
  const [, type = '', field, text = ''] = /^(\w+)(?:\.(\S+))?: (\S.*)$/.exec(line) ?? [];
  if (text === '') throw new Error(`${group}: not a description: ${line}`);
  const name = `${group}.${type}`;
  const lines = types.get(name) ?? { own: undefined, others: undefined, fields: new Map() };
  types.set(name, lines);
  const second =
    field === undefined ? lines.own : field === '*' ? lines.others : lines.fields.get(field);
  if (second !== undefined) throw new Error(`${group}: a second line: ${line}`);
  if (field === undefined) lines.own = text;
  else if (field === '*') lines.others = text;
  else lines.fields.set(field, text);
}

function typeLine(
  types: ReadonlyMap<string, TypeLines>,
  name: string,
  { own = '' }: TypeLines,
): string {
  const fields = fieldsOf(types, name).map(([field, text]) => [field, resolvedText(types, text)]);
  return [name, resolvedText(types, own), ...fields.flat()].join('\t');
}

/** The fields of a type, including those it takes from others; references are qualified. */
function fieldsOf(types: ReadonlyMap<string, TypeLines>, start: string): [string, string][] {
  const textByField = new Map<string, string>();
  let name = start;
  for (let depth = 0; depth < depthMax; depth += 1) {
    const lines = types.get(name);
    if (lines === undefined) throw new Error(`${start}: there is no type ${name}`);
    for (const [field, text] of lines.fields) {
      if (!textByField.has(field)) textByField.set(field, withGroup(name, text));
    }
    if (lines.others === undefined) return [...textByField];
    name = withGroup(name, lines.others).slice(1);
  }
  throw new Error(`${start}: takes its fields from too many types in a row`);
}

/** Qualifies `=Type` and `=Type.field` with the group of the type they describe. */
function withGroup(name: string, text: string): string {
  const isOwn = /^=[A-Z]/.test(text);
  return isOwn ? `=${name.slice(0, name.indexOf('.'))}.${text.slice(1)}` : text;
}

function resolvedText(types: ReadonlyMap<string, TypeLines>, text: string): string {
  if (!text.startsWith('=')) return text;
  const [group, type, field] = text.slice(1).split('.');
  const lines = types.get(`${group}.${type}`);
  const line = field === undefined ? lines?.own : lines?.fields.get(field);
  if (line === undefined || line.startsWith('=')) throw new Error(`${text} leads to no text`);
  return line;
}
