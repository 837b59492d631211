import { factsByHand, stemsByHand } from './facts-by-hand.ts';
import { factsByGroup, groupStems as generatedStems } from './gen/index.ts';

/** Group name without the vendor suffix, by the directory of its facts. */
export const groupStems: Readonly<Record<string, string>> = { ...generatedStems, ...stemsByHand };

/** One field of a built-in type, as the generated tables tell it. */
export interface FieldFacts {
  /** JSON name; empty for an embedded struct, whose fields are this type's own in JSON. */
  readonly name: string;
  /** Protobuf field number; undefined when protobuf does not carry the field. */
  readonly number: number | undefined;
  /** `*` pointer, `[]` list, `{}` map, then a scalar or a full type name (`core.v1.Pod`). */
  readonly type: string;
  readonly omitEmpty: boolean;
  readonly optional: boolean;
  readonly required: boolean;
  readonly listType: string | undefined;
  readonly listMapKeys: readonly string[];
  readonly mapType: string | undefined;
  readonly patchStrategies: readonly string[];
  readonly patchMergeKey: string | undefined;
  /** JSON text of the declared default. */
  readonly default: string | undefined;
}

/** A struct of a built-in group. */
export interface StructFacts {
  readonly name: string;
  readonly fields: readonly FieldFacts[];
  /** Has apiVersion and kind of its own. */
  readonly isKind: boolean;
  readonly structType: string | undefined;
  /** Releases as `1.22`. */
  readonly introduced: string | undefined;
  readonly deprecated: string | undefined;
  readonly removed: string | undefined;
  readonly replacement: { group: string; version: string; kind: string } | undefined;
}

/** What is known of one API version of a group (`core.v1`). */
export interface VersionFacts {
  readonly struct: (name: string) => StructFacts | undefined;
  readonly structNames: readonly string[];
  /** Named lists and maps: name -> type. */
  readonly aliases: ReadonlyMap<string, string>;
  /** String types with a closed list of values. */
  readonly enums: ReadonlyMap<string, readonly string[]>;
}

const scalars = new Set(['string', 'bool', 'int32', 'int64', 'uint8', 'float64', 'bytes']);
const parsedGroups = new Map<string, ReadonlyMap<string, VersionFacts>>();

/** Facts of a version such as `core.v1` or `meta.v1`; undefined when there is no such version. */
export function versionFacts(groupVersion: string): VersionFacts | undefined {
  const [group = '', version = ''] = groupVersion.split('.');
  let versions = parsedGroups.get(group);
  if (versions === undefined) {
    const texts = [factsByGroup, factsByHand].map((table) =>
      Object.hasOwn(table, group) ? (table[group] ?? '') : '',
    );
    versions = parseGroup(group, texts);
    parsedGroups.set(group, versions);
  }
  return versions.get(version);
}

/** Facts of a struct by its full name (`core.v1.Pod`). */
export function structFacts(typeName: string): StructFacts | undefined {
  const { groupVersion, name } = splitTypeName(typeName);
  return versionFacts(groupVersion)?.struct(name);
}

/** `core.v1.Pod` -> `core.v1` and `Pod`. */
export function splitTypeName(typeName: string): { groupVersion: string; name: string } {
  const dot = typeName.lastIndexOf('.');
  return { groupVersion: typeName.slice(0, dot), name: typeName.slice(dot + 1) };
}

/** Cuts a table into versions; its format is described in scripts/facts/generate.mjs. */
function parseGroup(group: string, texts: readonly string[]): ReadonlyMap<string, VersionFacts> {
  const parts = new Map<string, { own: string; named: string[]; blocks: string[] }>();
  for (const text of texts.flatMap((one) => one.split('\n@').slice(1))) {
    const [head = '', ...blocks] = text.split('\n#');
    const [version = '', ...named] = head.split('\n');
    const known = parts.get(version);
    known?.blocks.push(...blocks);
    if (known === undefined) parts.set(version, { own: `${group}.${version}`, named, blocks });
  }
  return new Map([...parts].map(([version, part]) => [version, versionOf(part)]));
}

/** Structs stay text until asked for: a start needs few of them. */
function versionOf(part: {
  own: string;
  named: readonly string[];
  blocks: readonly string[];
}): VersionFacts {
  const { own } = part;
  const aliases = new Map<string, string>();
  const enums = new Map<string, readonly string[]>();
  for (const line of part.named) {
    const space = line.indexOf(' ');
    const [name, value] = [line.slice(1, space), line.slice(space + 1)];
    if (line.startsWith('=')) aliases.set(name, qualified(value, own));
    if (line.startsWith('!')) enums.set(name, JSON.parse(value) as string[]);
  }
  const texts = new Map(part.blocks.map((block) => [/^\w+/.exec(block)?.[0] ?? '', block]));
  const parsed = new Map<string, StructFacts>();
  const struct = (name: string): StructFacts | undefined => {
    const text = texts.get(name);
    if (text === undefined) return undefined;
    const facts = parsed.get(name) ?? parseStruct(text, own);
    parsed.set(name, facts);
    return facts;
  };
  return { struct, structNames: [...texts.keys()], aliases, enums };
}

function parseStruct(text: string, own: string): StructFacts {
  const [head = '', ...lines] = text.split('\n');
  const [name = '', marks = ''] = cut(head, 1);
  const fields = lines
    .filter((line) => line !== '')
    .map((line) => fieldOf(line.startsWith('^') ? ` ${line.slice(1)}` : line, own));
  return structOf(name, marks, fields);
}

type Marks = ReadonlyMap<string, readonly string[]>;

/** By their text: thousands of fields have a few dozen texts among them. */
const readMarks = new Map<string, Marks>();

/** Marks as name -> values; a bare mark has the value `true`. */
function marksOf(text: string): Marks {
  let marks = readMarks.get(text);
  if (marks === undefined) {
    marks = parseMarks(text.split(' '));
    readMarks.set(text, marks);
  }
  return marks;
}

function parseMarks(words: readonly string[]): Marks {
  const marks = new Map<string, string[]>();
  for (const word of words) {
    const equals = word.indexOf('=');
    const [name, value] =
      equals < 0 ? [word, 'true'] : [word.slice(0, equals), word.slice(equals + 1)];
    marks.set(name, [...(marks.get(name) ?? []), value]);
  }
  return marks;
}

function structOf(name: string, words: string, fields: readonly FieldFacts[]): StructFacts {
  const marks = marksOf(words);
  const [group, version, kind] = marks.get('r')?.[0]?.split(',') ?? [];
  return {
    name,
    fields,
    isKind: marks.has('k'),
    structType: marks.get('s')?.[0],
    introduced: marks.get('i')?.[0],
    deprecated: marks.get('d')?.[0],
    removed: marks.get('x')?.[0],
    replacement:
      group === undefined || version === undefined || kind === undefined
        ? undefined
        : { group, version, kind },
  };
}

/** The first words of a text, and all that follows them as the last. */
function cut(text: string, words: number): string[] {
  const parts: string[] = [];
  let from = 0;
  while (parts.length < words) {
    const space = text.indexOf(' ', from);
    if (space < 0) break;
    parts.push(text.slice(from, space));
    from = space + 1;
  }
  parts.push(text.slice(from));
  return parts;
}

function fieldOf(line: string, own: string): FieldFacts {
  const defaultAt = line.indexOf(' v=');
  const words = defaultAt < 0 ? line : line.slice(0, defaultAt);
  const [name = '', number = '-', type = '', rest = ''] = cut(words, 3);
  const marks = marksOf(rest);
  return {
    name,
    number: number === '-' ? undefined : Number(number),
    type: qualified(type, own),
    omitEmpty: marks.has('e'),
    optional: marks.has('o'),
    required: marks.has('q'),
    listType: marks.get('l')?.[0],
    listMapKeys: marks.get('k') ?? [],
    mapType: marks.get('m')?.[0] ?? marks.get('s')?.[0],
    patchStrategies: marks.get('p')?.[0]?.split(',') ?? [],
    patchMergeKey: marks.get('y')?.[0],
    default: defaultAt < 0 ? undefined : line.slice(defaultAt + 3),
  };
}

/** Names of the own version stand bare in the tables. */
function qualified(type: string, own: string): string {
  let start = 0;
  while (start < type.length && '*[]{}'.includes(type[start] ?? '')) start += 1;
  const base = type.slice(start);
  return scalars.has(base) || base.includes('.') ? type : `${type.slice(0, start)}${own}.${base}`;
}
