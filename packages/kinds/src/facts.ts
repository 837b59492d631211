import { appendAll } from '@wheelhouse/machinery';
import { factsByHand, stemsByHand } from './facts-by-hand.ts';
import { factsByGroup, groupStems as generatedStems } from './gen/index.ts';

/** Group names without the vendor suffix, by the directory of their facts. */
export const groupStems: Readonly<Record<string, string>> = { ...generatedStems, ...stemsByHand };

/** The parsed marks of a field; thousands of fields share a few dozen combinations. */
export interface FieldMarks {
  readonly omitEmpty: boolean;
  readonly optional: boolean;
  readonly required: boolean;
  readonly listType: string | undefined;
  readonly listMapKeys: readonly string[];
  readonly mapType: string | undefined;
  readonly patchStrategies: readonly string[];
  readonly patchMergeKey: string | undefined;
  /** The type's name in Go (`v1.RestartPolicy`) if it does not follow from the type. */
  readonly goName: string | undefined;
}

/** One field of a built-in type. */
export interface FieldFacts {
  /** JSON name; empty for an embedded struct, whose fields belong to this type in JSON. */
  readonly name: string;
  /** Protobuf field number; undefined for fields without one. */
  readonly number: number | undefined;
  /** `*` pointer, `[]` list, `{}` map, then a scalar or a full type name (`core.v1.Pod`). */
  readonly type: string;
  readonly marks: FieldMarks;
  /** JSON text of the declared default. */
  readonly default: string | undefined;
}

/** A struct of a built-in group. */
interface StructFacts {
  readonly name: string;
  readonly fields: readonly FieldFacts[];
  /** Whether it has its own apiVersion and kind. */
  readonly isKind: boolean;
  readonly structType: string | undefined;
  /** Releases as `1.22`. */
  readonly introduced: string | undefined;
  readonly deprecated: string | undefined;
  readonly removed: string | undefined;
  readonly replacement: { group: string; version: string; kind: string } | undefined;
}

/** Facts about one API version of a group (`core.v1`). */
interface VersionFacts {
  readonly struct: (name: string) => StructFacts | undefined;
  readonly hasStruct: (name: string) => boolean;
  readonly structNames: readonly string[];
  /** Named lists and maps: name -> type. */
  readonly aliases: ReadonlyMap<string, string>;
  /** String types with a closed list of values. */
  readonly enums: ReadonlyMap<string, readonly string[]>;
}

const scalars = new Set(['string', 'bool', 'int32', 'int64', 'uint8', 'float64', 'bytes']);
const parsedGroups = new Map<string, ReadonlyMap<string, VersionFacts>>();

/** Facts of a version such as `core.v1` or `meta.v1`; undefined for unknown versions. */
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

/** The versions in the tables of a directory. */
export function versionsOfFacts(directory: string): readonly string[] {
  const texts = [factsByGroup, factsByHand].map((table) =>
    Object.hasOwn(table, directory) ? (table[directory] ?? '') : '',
  );
  const versions = texts.flatMap((text) => [...text.matchAll(/^@(\w+)$/gm)]);
  return [...new Set(versions.map(([, version = '']) => version))];
}

/** Facts of a struct by its full name (`core.v1.Pod`). */
export function structFacts(typeName: string): StructFacts | undefined {
  const { groupVersion, name } = splitTypeName(typeName);
  return versionFacts(groupVersion)?.struct(name);
}

/** Whether the tables contain a struct of this full name; cheaper than reading its facts. */
export function hasStructFacts(typeName: string): boolean {
  const { groupVersion, name } = splitTypeName(typeName);
  return versionFacts(groupVersion)?.hasStruct(name) === true;
}

/** `core.v1.Pod` -> `core.v1` and `Pod`. */
export function splitTypeName(typeName: string): { groupVersion: string; name: string } {
  const dot = typeName.lastIndexOf('.');
  return { groupVersion: typeName.slice(0, dot), name: typeName.slice(dot + 1) };
}

/** Splits a table into versions; scripts/facts/generate.mjs describes the format. */
function parseGroup(group: string, texts: readonly string[]): ReadonlyMap<string, VersionFacts> {
  const parts = new Map<string, { own: string; named: string[]; blocks: string[] }>();
  for (const text of texts.flatMap((source) => source.split('\n@').slice(1))) {
    const [head = '', ...blocks] = text.split('\n#');
    const [version = '', ...named] = head.split('\n');
    const existingPart = parts.get(version);
    if (existingPart === undefined)
      parts.set(version, { own: `${group}.${version}`, named, blocks });
    else appendAll(existingPart.blocks, blocks);
  }
  return new Map([...parts].map(([version, part]) => [version, versionOf(part)]));
}

/** Structs are parsed on demand, because a start needs few of them. */
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
  const texts = new Map(part.blocks.map((block) => [block.slice(0, nameEnd(block)), block]));
  const parsed = new Map<string, StructFacts>();
  const qualify = qualifier(own);
  const struct = (name: string): StructFacts | undefined => {
    let facts = parsed.get(name);
    const text = facts === undefined ? texts.get(name) : undefined;
    if (text !== undefined) {
      facts = parseStruct(text, qualify);
      parsed.set(name, facts);
    }
    return facts;
  };
  const hasStruct = (name: string) => texts.has(name);
  return { struct, hasStruct, structNames: [...texts.keys()], aliases, enums };
}

function nameEnd(block: string): number {
  const end = block.search(/[ \n]/);
  return end < 0 ? block.length : end;
}

function parseStruct(text: string, qualify: (type: string) => string): StructFacts {
  const [head = '', ...lines] = text.split('\n');
  const end = nameEnd(head);
  const fields = lines.filter((line) => line !== '').map((line) => fieldOf(line, qualify));
  return structOf(head.slice(0, end), head.slice(end + 1), fields);
}

/** Marks as name -> values; a mark without a value has the value `true`. */
function parseMarks(text: string): ReadonlyMap<string, readonly string[]> {
  const marks = new Map<string, string[]>();
  for (const word of text.split(' ')) {
    const equals = word.indexOf('=');
    const [name, value] =
      equals < 0 ? [word, 'true'] : [word.slice(0, equals), word.slice(equals + 1)];
    marks.set(name, [...(marks.get(name) ?? []), value]);
  }
  return marks;
}

function structOf(name: string, words: string, fields: readonly FieldFacts[]): StructFacts {
  const marks = parseMarks(words);
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

/** Optimized for code that runs once and is never compiled: few calls, all to V8 built-ins. */
function fieldOf(line: string, qualify: (type: string) => string): FieldFacts {
  // An embedded struct has `^` in place of a name and a space.
  const nameAt = line.startsWith('^') ? 0 : line.indexOf(' ');
  const numberAt = line.indexOf(' ', nameAt + 1);
  const typeAt = line.indexOf(' ', numberAt + 1);
  const typeEnd = typeAt < 0 ? line.length : typeAt;
  const defaultAt = line.indexOf(' v=', typeEnd);
  const marksEnd = defaultAt < 0 ? line.length : defaultAt;
  const number = line.slice(nameAt + 1, numberAt);
  return {
    name: line.slice(0, nameAt),
    number: number === '-' ? undefined : Number(number),
    type: qualify(line.slice(numberAt + 1, typeEnd)),
    marks: fieldMarks(line.slice(typeEnd + 1, marksEnd)),
    default: defaultAt < 0 ? undefined : line.slice(defaultAt + 3),
  };
}

const marksByText = new Map<string, FieldMarks>();

function fieldMarks(text: string): FieldMarks {
  let parsed = marksByText.get(text);
  if (parsed === undefined) {
    const marks = parseMarks(text);
    parsed = {
      omitEmpty: marks.has('e'),
      optional: marks.has('o'),
      required: marks.has('q'),
      listType: marks.get('l')?.[0],
      listMapKeys: marks.get('k') ?? [],
      mapType: marks.get('m')?.[0] ?? marks.get('s')?.[0],
      patchStrategies: marks.get('p')?.[0]?.split(',') ?? [],
      patchMergeKey: marks.get('y')?.[0],
      goName: marks.get('t')?.[0],
    };
    marksByText.set(text, parsed);
  }
  return parsed;
}

/** Returns a function that qualifies types of one version's tables, where local names are bare. */
function qualifier(own: string): (type: string) => string {
  const qualifiedNames = new Map<string, string>();
  return (type) => {
    let full = qualifiedNames.get(type);
    if (full === undefined) {
      full = qualified(type, own);
      qualifiedNames.set(type, full);
    }
    return full;
  };
}

function qualified(type: string, own: string): string {
  let start = 0;
  while (start < type.length && '*[]{}'.includes(type[start] ?? '')) start += 1;
  const base = type.slice(start);
  return scalars.has(base) || base.includes('.') ? type : `${type.slice(0, start)}${own}.${base}`;
}
