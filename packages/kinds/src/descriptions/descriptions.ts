import type { Dialect } from '@wheelhouse/machinery';
import { structFacts } from '../facts.ts';
import { descriptionTexts } from './texts.ts';

/**
 * Descriptions of built-in types and their fields, as OpenAPI documents publish them (PLANE-8).
 *
 * A file describes the types of one group. A line is `Type: text` or `Type.field: text`; in front
 * of it, `v2.` limits the line to a version. `=Type` and `=Type.field`, with the group in front
 * where it is another (`=meta.Condition`), stand for the text of another line. `Type.*: =Other`
 * takes the fields that have no line of their own from another type. A text names what differs
 * between dialects in braces, see `dialectWords`.
 */
export interface Descriptions {
  /** The text of a type by its full name (`core.v1.Pod`); undefined where there is none. */
  ofType(typeName: string): string | undefined;
  /** The text of a type's field. */
  ofField(typeName: string, field: string): string | undefined;
  /** The text of a member that all kinds have. */
  ofEveryKind(member: 'apiVersion' | 'kind' | 'metadata'): string | undefined;
  /** The text of the list of a kind, or of a member of that list. */
  ofList(kind: string, member?: 'items' | 'metadata'): string | undefined;
}

/** How many types may stand behind each other with `Type.*`, so that a circle of them ends. */
const depthMax = 4;

/** Lines by `group.Type`, `group.Type.field` and `group.v2.Type.field`, without the dialect. */
let lines: ReadonlyMap<string, string> | undefined;

/** The descriptions in a dialect's words. Unpacks them at the first use, which takes milliseconds. */
export function describedIn(dialect: Dialect): Descriptions {
  lines ??= linesOf(descriptionTexts());
  const finder = new Finder(lines);
  const worded = (text: string | undefined) => text && inDialect(dialect, text);
  return {
    ofType: (typeName) => worded(finder.type(splitType(typeName))),
    ofField: (typeName, field) => worded(finder.field(splitType(typeName), field)),
    ofEveryKind: (member) => worded(finder.everyKind(member)),
    ofList: (kind, member) => worded(finder.list(kind, member)),
  };
}

interface TypePlace {
  readonly group: string;
  readonly version: string;
  readonly name: string;
  /** Whether it has the members that all kinds have; types without facts are taken for kinds. */
  readonly isKind: boolean;
}

/** `core.v1.Pod` has a version, `resource.Quantity` has none. */
function splitType(typeName: string): TypePlace {
  const [group = '', second = '', third] = typeName.split('.');
  const isKind = structFacts(typeName)?.isKind ?? true;
  return third === undefined
    ? { group, version: '', name: second, isKind }
    : { group, version: second, name: third, isKind };
}

/** Parses the text of `descriptionTexts`. Lines without a colon are not descriptions. */
function linesOf(texts: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  let group = '';
  for (const line of texts.split('\n')) {
    if (line.startsWith('@')) group = line.slice(1);
    const colon = line.indexOf(': ');
    if (colon >= 0) found.set(`${group}.${line.slice(0, colon)}`, line.slice(colon + 2));
  }
  return found;
}

class Finder {
  readonly #lines: ReadonlyMap<string, string>;

  constructor(found: ReadonlyMap<string, string>) {
    this.#lines = found;
  }

  type(place: TypePlace): string | undefined {
    const own = this.#text(place, '');
    if (own !== undefined) return own;
    const item = itemOf(place.name);
    return item === undefined ? undefined : this.list(item);
  }

  field(place: TypePlace, field: string): string | undefined {
    return this.#ownField(place, field) ?? this.#sharedField(place, field);
  }

  everyKind(member: 'apiVersion' | 'kind' | 'metadata'): string | undefined {
    return this.#lines.get(`meta.Kind.${member}`);
  }

  list(item: string, member?: 'items' | 'metadata'): string | undefined {
    const line = this.#lines.get(member === undefined ? 'meta.List' : `meta.List.${member}`);
    return line?.replaceAll('{item}', item);
  }

  #ownField(start: TypePlace, field: string): string | undefined {
    let place = start;
    for (let depth = 0; depth < depthMax; depth += 1) {
      const text = this.#text(place, `.${field}`);
      if (text !== undefined) return text;
      const other = this.#line(place, '.*');
      if (other === undefined) return undefined;
      place = referred(place, other).place;
    }
    return undefined;
  }

  /** Members that all kinds, or all lists, have. */
  #sharedField({ name, isKind }: TypePlace, field: string): string | undefined {
    if (!isKind) return undefined;
    const item = itemOf(name);
    const isOfLists = field === 'items' || field === 'metadata';
    if (item !== undefined && isOfLists) return this.list(item, field);
    const isOfKinds = field === 'apiVersion' || field === 'kind' || field === 'metadata';
    return isOfKinds ? this.everyKind(field) : undefined;
  }

  #text(place: TypePlace, end: string): string | undefined {
    const line = this.#line(place, end);
    if (line === undefined || !line.startsWith('=')) return line;
    const { place: other, field } = referred(place, line);
    return this.#line(other, field === undefined ? '' : `.${field}`);
  }

  #line({ group, version, name }: TypePlace, end: string): string | undefined {
    const ofVersion = this.#lines.get(`${group}.${version}.${name}${end}`);
    return ofVersion ?? this.#lines.get(`${group}.${name}${end}`);
  }
}

/** The item's kind by the name of a list's: `PodList` -> `Pod`. */
function itemOf(name: string): string | undefined {
  return name.length > 'List'.length && name.endsWith('List') ? name.slice(0, -4) : undefined;
}

/** What `=Type`, `=Type.field`, `=group.Type` or `=group.Type.field` leads to. */
function referred(
  from: TypePlace,
  line: string,
): { readonly place: TypePlace; readonly field: string | undefined } {
  const [first = '', ...rest] = line.slice(1).split('.');
  const isGroup = /^[a-z]/.test(first);
  const [name = '', field] = isGroup ? rest : [first, ...rest];
  const group = isGroup ? first : from.group;
  return { place: { ...from, group, name }, field };
}

/** Replaces the words in braces that `dialectWords` has; others stay as they are. */
function inDialect(dialect: Dialect, text: string): string {
  if (!text.includes('{')) return text;
  return text.replace(
    /\{(\w+)\}/g,
    (whole, word: string) => dialectWords[word]?.(dialect) ?? whole,
  );
}

const dialectWords: Readonly<Record<string, (dialect: Dialect) => string>> = {
  /** Domain of labels and annotations. */
  domain: ({ labelDomain }) => labelDomain,
  /** Ends the groups' names. */
  groups: ({ groupSuffix }) => groupSuffix,
  /** Ahead of system namespaces: `{prefix}system`. */
  prefix: ({ namespacePrefix }) => namespacePrefix,
  /** The command-line client. */
  tool: ({ tool }) => tool,
};
