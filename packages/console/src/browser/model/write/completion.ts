import { apiVersionOf, type Kind } from '../kinds.ts';
import { type ExplainedField, explain, type KindSchema } from '../schema.ts';
import { contextAt, type YamlContext } from './yaml-context.ts';

/** Something that can be written at a place of a text. */
export interface Completion {
  readonly label: string;
  /** `[]Container`, `required` */
  readonly detail: string;
  readonly description: string;
  /** What is put in its place. */
  readonly text: string;
  readonly type: 'field' | 'value';
  readonly isRequired: boolean;
}

/** What can be written at an offset, in the place of the text from `from` to there. */
export interface Completions {
  readonly from: number;
  readonly options: readonly Completion[];
}

/** What the kind's schema allows at an offset of a text: fields that are not there yet, or values. */
export function completionsAt(
  of: { readonly kind: Kind; readonly schema: KindSchema },
  text: string,
  offset: number,
): Completions {
  const context = contextAt(text, offset);
  const { from } = context;
  if (context.at === 'value') return { from, options: valuesAt(of, context) };
  const around = explain(of.schema, context.path);
  const written = new Set(context.siblings);
  const fields = (around?.fields ?? []).filter(({ name }) => !written.has(name));
  const options = fields.map((field) => fieldOption(field, context.indent));
  // Items of a list may themselves be one of several values.
  const values = fields.length === 0 ? (around?.own?.values ?? []) : [];
  return { from, options: [...options, ...values.map((value) => valueOption(value))] };
}

function fieldOption(field: ExplainedField, indent: number): Completion {
  const { name, type, isRequired, description, isNested } = field;
  const inner = ' '.repeat(indent + 2);
  const isList = type.startsWith('[]');
  const isMap = type.startsWith('map[') || type === 'Object' || isNested;
  const behind = isList ? `\n${' '.repeat(indent)}- ` : isMap ? `\n${inner}` : ' ';
  return {
    label: name,
    detail: isRequired ? `${type}, required` : type,
    description,
    text: `${name}:${behind}`,
    type: 'field',
    isRequired,
  };
}

function valuesAt(
  { kind, schema }: { readonly kind: Kind; readonly schema: KindSchema },
  { path, name }: YamlContext,
): Completion[] {
  if (path.length === 0 && name === 'apiVersion') return [valueOption(apiVersionOf(kind))];
  if (path.length === 0 && name === 'kind') return [valueOption(kind.kind)];
  const own = explain(schema, [...path, name])?.own;
  if (own === undefined) return [];
  const { values, standard } = own;
  const standardText = standard?.replace(/^"(.*)"$/, '$1');
  const candidates = own.type === 'boolean' ? ['true', 'false'] : values;
  const all = standardText === undefined ? candidates : [standardText, ...candidates];
  return [...new Set(all)].map((value) =>
    valueOption(value, value === standardText ? 'default' : ''),
  );
}

function valueOption(text: string, detail = ''): Completion {
  return { label: text, detail, description: '', text, type: 'value', isRequired: false };
}
