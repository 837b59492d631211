import {
  appendAll,
  cloneJson,
  type FieldError,
  fieldErrorsText,
  goSyntax,
  invalidGo,
  isObject,
  type JsonValue,
  jsonEqual,
  showHead,
  withField,
} from '@wheelhouse/machinery';
import {
  childPath,
  coerceEmbedded,
  EmbeddedError,
  type EmbeddedRules,
  keyPath,
  type PatternAge,
  pruneValue,
  type Schema,
  validateEmbedded,
  validateStructure,
} from '@wheelhouse/schema';
import { metaFields } from './schema-rules.ts';

/**
 * Validates a default against the CEL rules of its schema, in steps.
 * @returns the errors and the remaining cost budget, which is negative if it is exceeded
 */
export type DefaultValidator = (
  schema: Schema,
  value: JsonValue,
  at: {
    readonly path: string;
    readonly isRoot: boolean;
    readonly budget: number;
    readonly patterns: PatternAge;
  },
) => Generator<void, { readonly errors: readonly FieldError[]; readonly left: number }>;

interface DefaultRuleOptions {
  readonly embedded: EmbeddedRules;
  readonly validateDefault: DefaultValidator | undefined;
  /** Whether the limit on new patterns applies to those of rules. */
  readonly patterns: PatternAge;
}

/** Upper bound of the total cost of the rules of all defaults of a schema. */
const budgetMax = 10_000_000;

/** One traversal of a schema. */
interface Walk extends DefaultRuleOptions {
  budget: number;
  /** Number of schemas visited so far. */
  schemas: number;
}

/** Number of schemas without a default that one step visits. */
const schemasPerStep = 500;

/** Wraps a value in the members between it and the embedded resource that contains it. */
type Surround = (value: JsonValue) => JsonValue;

interface Place {
  readonly path: string;
  readonly root: Schema;
  readonly surround: Surround;
  readonly insideMeta: boolean;
}

const refused = (field: string, standard: JsonValue, detail: string): FieldError =>
  invalidGo(field, () => showHead(standard, goSyntax), detail);

/** Validates all defaults of a structural schema, which must be valid and pruned. */
export function* validateDefaults(
  schema: Schema,
  path: string,
  options: DefaultRuleOptions,
): Generator<void, FieldError[]> {
  const root = { ...schema, embeddedResource: true };
  return yield* defaultsAt(
    root,
    { path, root, surround: (x) => x, insideMeta: false },
    { ...options, budget: budgetMax, schemas: 0 },
  );
}

function* defaultsAt(
  schema: Schema,
  outerPlace: Place,
  options: Walk,
): Generator<void, FieldError[]> {
  if (options.budget < 0) return [];
  options.schemas += 1;
  if (options.schemas % schemasPerStep === 0) yield;
  const place =
    schema.embeddedResource === true
      ? { ...outerPlace, insideMeta: false, root: schema, surround: withTypeMeta }
      : outerPlace;
  const errors = yield* ownErrors(schema, place, options);
  const { items, properties } = schema;
  if (items !== undefined) {
    const surround: Surround = (value) => place.surround([value]);
    const at = { ...place, surround, path: childPath(place.path, 'items') };
    appendAll(errors, yield* defaultsAt(items, at, options));
  }
  for (const [name, property] of properties ?? []) {
    const insideMeta =
      place.insideMeta || (schema.embeddedResource === true && metaFields.has(name));
    const at = {
      ...place,
      insideMeta,
      surround: (value: JsonValue) => place.surround({ [name]: value }),
      path: keyPath(childPath(place.path, 'properties'), name),
    };
    appendAll(errors, yield* defaultsAt(property.schema, at, options));
  }
  return errors;
}

const withTypeMeta: Surround = (value) => ({
  apiVersion: 'validation/v1',
  kind: 'Validation',
  ...(isObject(value) ? value : {}),
});

function* ownErrors(schema: Schema, place: Place, options: Walk): Generator<void, FieldError[]> {
  const standard = schema.default;
  if (standard === undefined) return [];
  yield;
  const field = childPath(place.path, 'default');
  if (place.insideMeta) return yield* metaDefaultErrors(schema, { ...place, field }, options);
  const errors: FieldError[] = [];
  const pruned = cloneJson(standard);
  pruneValue(schema, pruned);
  if (!jsonEqual(pruned, standard)) {
    errors.push(refused(field, standard, 'must not have unknown fields'));
  }
  const under = (error: FieldError) => withField(error, pathUnder(field, error.field));
  try {
    coerceEmbedded(schema, cloneJson(standard), options.embedded);
  } catch (error) {
    if (!(error instanceof EmbeddedError)) throw error;
    return [...errors, under(error.fieldError)];
  }
  const embedded = validateEmbedded(schema, standard, options.embedded);
  if (embedded.length > 0) return [...errors, ...embedded.map(under)];
  return [...errors, ...(yield* valueErrors(schema, { ...place, field }, options))];
}

/** Validates a default by its schema and, if it is valid, by the CEL rules. */
function* valueErrors(
  schema: Schema,
  place: Place & { readonly field: string },
  walk: Walk,
): Generator<void, readonly FieldError[]> {
  const standard = schema.default ?? null;
  const errors = yield* validateStructure(schema)(standard, { prefix: place.field });
  if (errors.length > 0 || walk.validateDefault === undefined) return errors;
  const { budget, patterns } = walk;
  const at = { path: place.field, isRoot: place.root === schema, budget, patterns };
  const result = yield* walk.validateDefault(schema, standard, at);
  walk.budget = result.left;
  return result.errors;
}

const pathUnder = (parent: string, path: string): string => {
  if (path === '') return parent;
  return path.startsWith('[') ? `${parent}${path}` : `${parent}.${path}`;
};

function* metaDefaultErrors(
  schema: Schema,
  place: Place & { readonly field: string },
  options: Walk,
): Generator<void, FieldError[]> {
  const standard = schema.default ?? null;
  const object = place.surround(cloneJson(standard));
  const wrong = (reason: string) => [
    refused(place.field, standard, `must result in valid metadata: ${reason}`),
  ];
  if (!isObject(object)) return [];
  try {
    coerceEmbedded(place.root, cloneJson(object), options.embedded);
  } catch (error) {
    if (!(error instanceof EmbeddedError)) throw error;
    return wrong(error.message);
  }
  const errors = validateEmbedded(place.root, object, options.embedded);
  if (errors.length > 0) return wrong(fieldErrorsText(errors));
  return [...(yield* valueErrors(schema, place, options))];
}
