import type { JsonValue } from '@wheelhouse/machinery';

/**
 * The one structural schema. Built-in kinds (from the generated table of facts) and custom kinds
 * (from `openAPIV3Schema`) both become this; everything that walks objects walks it. Schemas are
 * immutable after construction and may be cyclic through `resolve`.
 */
export interface Schema {
  /**
   * `undefined` together with `intOrString` is an integer or a string; alone it is any value
   * (only where `preserveUnknownFields` is set, or in embedded raw JSON).
   */
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  /** Set on a stand-in for a schema that is built later or refers to itself. Use `resolved()`. */
  readonly resolve?: () => Schema;

  /** Object with named members, in declaration order (the order of encoding for built-in kinds). */
  readonly properties?: ReadonlyMap<string, Property>;
  readonly required?: readonly string[];
  /** Map of any names to one schema. Never together with `properties`. */
  readonly additionalProperties?: Schema;
  readonly items?: Schema;

  readonly nullable?: boolean;
  readonly default?: JsonValue;
  readonly intOrString?: boolean;
  readonly preserveUnknownFields?: boolean;
  /**
   * A complete object with apiVersion, kind and metadata of its own (`x-kubernetes-embedded-
   * resource`).
   */
  readonly embeddedResource?: boolean;

  /** For lists. Absent means atomic. */
  readonly listType?: 'atomic' | 'set' | 'map';
  readonly listMapKeys?: readonly string[];
  /** For objects and maps (`structType` and `mapType`). Absent means granular. */
  readonly mapType?: 'atomic' | 'granular';

  /** Strategic merge; built-in kinds only. */
  readonly patchStrategies?: readonly ('merge' | 'replace' | 'retainKeys')[];
  readonly patchMergeKey?: string;

  /**
   * `int32`, `int64`, `float`, `double`, `byte`, `date-time`, `micro-time`, `quantity`,
   * `duration`, …
   */
  readonly format?: string;
  readonly validation?: ValueValidation;
  readonly title?: string;
  readonly description?: string;
  /** CEL rules (`x-kubernetes-validations`), kept for a later engine. */
  readonly rules?: readonly CelRule[];

  /** Set on schemas of built-in Go-shaped types: how a decoder treats zero values. */
  readonly typed?: boolean;
  /**
   * Set where JSON holds one of several shapes (a schema or a boolean, in a CustomResourceDefinition);
   * such a value is otherwise opaque, and atomic.
   */
  readonly alternatives?: Alternatives;
  /** Name of the built-in type (`io.k8s.api.core.v1.Pod` without vendor: `core.v1.Pod`). */
  readonly typeName?: string;
  /** What Go calls the type where that is neither `typeName` nor follows: `v1.RestartPolicy`. */
  readonly goName?: string;
}

/** The shapes a value may have, and what an object or the items of a list then are. */
export interface Alternatives {
  readonly object?: Schema;
  readonly list?: Schema;
  readonly boolean?: true;
  /** What Go says when it is none of them; absent: such a value counts as not given. */
  readonly otherwise?: string;
}

/**
 * Stands for a value nothing is known about: `additionalProperties: true`. Compared by identity.
 */
export const anySchema: Schema = Object.freeze({});

/**
 * Stands for members that may not be there: `additionalProperties: false`. Compared by identity.
 */
export const noSchema: Schema = Object.freeze({});

/** Whether a schema is one of the two stand-ins, which say nothing about structure. */
export function saysNothing(schema: Schema): boolean {
  return schema === anySchema || schema === noSchema;
}

/** A named member of an object. */
export interface Property {
  readonly schema: Schema;
  /** Protobuf field number; built-in kinds only. */
  readonly number?: number;
  /**
   * Set for a member of a struct embedded in this one: JSON has it here, protobuf has it inside the
   * message in these field numbers, outermost first; `number` counts in the innermost.
   */
  readonly inlineIn?: readonly number[];
  /** Left out of the encoding when it holds its zero value; built-in kinds only. */
  readonly omitEmpty?: boolean;
  /** Absent and zero are distinct; built-in kinds only. */
  readonly pointer?: boolean;
  /** `pointer` by the specification alone: upstream's type has a plain value here. */
  readonly isPlainUpstream?: boolean;
}

/** Value validations: OpenAPI's keywords that judge a value without changing its structure. */
export interface ValueValidation {
  readonly enum?: readonly JsonValue[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly format?: string;
  readonly allOf?: readonly NestedValidation[];
  readonly anyOf?: readonly NestedValidation[];
  readonly oneOf?: readonly NestedValidation[];
  readonly not?: NestedValidation;
}

/** Validations inside allOf, anyOf, oneOf and not: they judge, but give no structure. */
export interface NestedValidation extends ValueValidation {
  readonly type?: Schema['type'];
  readonly required?: readonly string[];
  readonly properties?: ReadonlyMap<string, NestedValidation>;
  readonly additionalProperties?: NestedValidation;
  readonly items?: NestedValidation;
  readonly nullable?: boolean;
  /** Allowed in the int-or-string pattern only, where it widens `type`. */
  readonly intOrString?: boolean;
}

export interface CelRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
  readonly fieldPath?: string;
  readonly optionalOldSelf?: boolean;
}

/** Follows stand-ins to the schema itself. */
export function resolved(schema: Schema): Schema {
  let at = schema;
  while (at.resolve !== undefined) at = at.resolve();
  return at;
}
