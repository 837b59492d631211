/** A file of descriptions: the group whose types it describes, and its text. */
export interface DescriptionFile {
  readonly group: string;
  readonly text: string;
}

interface TypeLines {
  own: string | undefined;
  /** The type from which the fields come that have no line here. */
  others: string | undefined;
  readonly fields: Map<string, string>;
}

/** How many types may take their fields from one another in a row. */
const depthMax = 4;

/**
 * Puts description files together in the form that is read at run time, which is quick to read: a
 * line for each type, of texts between tabs. `core.Pod`, its own text, then each field and its text.
 *
 * The lines of a file are `Type: text` and `Type.field: text`. A text `=Type` or `=Type.field`
 * stands for that of another line, and `Type.*: =Other` takes the fields that have no line from
 * another type; a type of another group has the group in front (`=meta.Condition`). Throws for lines
 * in another form, second lines for one thing, and references that lead nowhere.
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

/** The fields of a type with those it takes from others; a reference has its group in front. */
function fieldsOf(types: ReadonlyMap<string, TypeLines>, start: string): [string, string][] {
  const found = new Map<string, string>();
  let name = start;
  for (let depth = 0; depth < depthMax; depth += 1) {
    const lines = types.get(name);
    if (lines === undefined) throw new Error(`${start}: there is no type ${name}`);
    for (const [field, text] of lines.fields) {
      if (!found.has(field)) found.set(field, withGroup(name, text));
    }
    if (lines.others === undefined) return [...found];
    name = withGroup(name, lines.others).slice(1);
  }
  throw new Error(`${start}: takes its fields from too many types in a row`);
}

/** `=Type` and `=Type.field` with the group of the type they are written for. */
function withGroup(name: string, text: string): string {
  const isOwn = /^=[A-Z]/.test(text);
  return isOwn ? `=${name.slice(0, name.indexOf('.'))}.${text.slice(1)}` : text;
}

function resolvedText(types: ReadonlyMap<string, TypeLines>, text: string): string {
  if (!text.startsWith('=')) return text;
  const [group, type, field] = text.slice(1).split('.');
  const lines = types.get(`${group}.${type}`);
  const found = field === undefined ? lines?.own : lines?.fields.get(field);
  if (found === undefined || found.startsWith('=')) throw new Error(`${text} leads to no text`);
  return found;
}
