import type { Dialect } from '@wheelhouse/machinery';
import { splitTypeName, structFacts } from '../facts.ts';
import { descriptionTexts } from './texts.ts';

/** Members that all kinds have. */
type KindMember = 'apiVersion' | 'kind' | 'metadata';

/** The descriptions of one type and its fields. */
export interface TypeDescriptions {
  /** Undefined if there is none. */
  readonly text: string | undefined;
  /** Undefined for a field without one. */
  field(name: string): string | undefined;
}

/** Descriptions of built-in types and their fields, as OpenAPI documents publish them (PLANE-8). */
export interface Descriptions {
  /** Descriptions of a type by full name (`core.v1.Pod`); all versions of a type share them. */
  ofType(typeName: string): TypeDescriptions;
  /** The text of a member that all kinds have. */
  ofKind(member: KindMember): string | undefined;
  /** The text of a kind's list, or of a member of that list. */
  ofList(kind: string, member?: 'items' | 'metadata'): string | undefined;
}

/** In no particular dialect; undefined before first use. */
let texts: string | undefined;

/** The descriptions in a dialect's words. First use decompresses them, which takes milliseconds. */
export function describedIn(dialect: Dialect): Descriptions {
  texts ??= descriptionTexts();
  const lines = new Map<string, string>();
  for (const line of inDialect(dialect, texts).split('\n')) {
    lines.set(line.slice(0, line.indexOf('\t')), line);
  }
  const everyKind = textsOf(lines.get('meta.Kind'));
  const everyList = textsOf(lines.get('meta.List'));
  const ofKind = (member: KindMember) => everyKind.get(member);
  const ofList = (kind: string, member: 'items' | 'metadata' | '' = '') =>
    everyList.get(member)?.replaceAll('{item}', kind);
  /** The text of a member that the type has because it is a kind or a list of a kind. */
  const shared = (typeName: string, field: string): string | undefined => {
    if (structFacts(typeName)?.isKind === false) return undefined;
    const item = itemOf(typeName);
    if (item !== undefined && (field === 'items' || field === 'metadata')) {
      return ofList(item, field);
    }
    const isOfKinds = field === 'apiVersion' || field === 'kind' || field === 'metadata';
    return isOfKinds ? ofKind(field) : undefined;
  };
  const ofType = (typeName: string): TypeDescriptions => {
    const fields = textsOf(lines.get(lineName(typeName)));
    const item = fields.get('') === undefined ? itemOf(typeName) : undefined;
    return {
      text: item === undefined ? fields.get('') : ofList(item),
      field: (name) => fields.get(name) ?? shared(typeName, name),
    };
  };
  return { ofType, ofKind, ofList };
}

/** The texts of a line from `resolvedDescriptions` by field; `''` is the type's own. */
function textsOf(line: string | undefined): ReadonlyMap<string, string> {
  const textByField = new Map<string, string>();
  const [, own = '', ...fields] = line?.split('\t') ?? [];
  if (own !== '') textByField.set('', own);
  for (let at = 0; at < fields.length; at += 2)
    textByField.set(fields[at] ?? '', fields[at + 1] ?? '');
  return textByField;
}

/** `core.v1.Pod` -> `core.Pod`; some types have no version (`resource.Quantity`). */
function lineName(typeName: string): string {
  const { groupVersion, name } = splitTypeName(typeName);
  const dot = groupVersion.indexOf('.');
  return `${dot < 0 ? groupVersion : groupVersion.slice(0, dot)}.${name}`;
}

/** The kind of a list's items: `core.v1.PodList` -> `Pod`. */
function itemOf(typeName: string): string | undefined {
  const { name } = splitTypeName(typeName);
  return name.length > 'List'.length && name.endsWith('List') ? name.slice(0, -4) : undefined;
}

/** Replaces the words in braces that differ between dialects. */
function inDialect(dialect: Dialect, text: string): string {
  const words: Readonly<Record<string, string>> = {
    domain: dialect.labelDomain,
    groups: dialect.groupSuffix,
    tool: dialect.tool,
  };
  return text.replace(/\{(\w+)\}/g, (whole, word: string) => words[word] ?? whole);
}
