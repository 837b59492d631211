import { type ApiObject, isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import type { SchemaProps } from '../apiextensions/schema-props.ts';

/** A CustomResourceDefinition (v1) as its decoder returns it. */
export interface Crd extends ApiObject {
  spec: CrdSpec;
  status?: CrdStatus;
}

/**
 * Casts a decoded definition, whose decoder ensures that it has a spec.
 * @throws TypeError for an object of another kind
 */
export function crdOf(object: ApiObject): Crd {
  if (!isCrd(object)) throw new TypeError('the object is not a CustomResourceDefinition');
  return object;
}

const isCrd = (object: ApiObject): object is Crd => isObject(object['spec']);

/** The desired state of a definition. */
export interface CrdSpec extends JsonObject {
  group: string;
  names: CrdNames;
  scope: string;
  versions: CrdVersion[];
  conversion?: CrdConversion;
  preserveUnknownFields?: boolean;
}

/** The names of a custom kind. */
export interface CrdNames extends JsonObject {
  plural: string;
  singular?: string;
  kind: string;
  listKind?: string;
  shortNames?: string[];
  categories?: string[];
}

/** A version of a custom kind. */
export interface CrdVersion extends JsonObject {
  name: string;
  served: boolean;
  storage: boolean;
  deprecated?: boolean;
  deprecationWarning?: string;
  schema?: { openAPIV3Schema?: SchemaProps };
  subresources?: CrdSubresources;
  additionalPrinterColumns?: CrdColumn[];
  selectableFields?: { jsonPath: string }[];
}

/** The subresources of a version. */
export interface CrdSubresources extends JsonObject {
  status?: JsonObject;
  scale?: CrdScale;
}

/** Paths of the values that a Scale shows, in simple form (`.spec.replicas`). */
export interface CrdScale extends JsonObject {
  specReplicasPath: string;
  statusReplicasPath: string;
  labelSelectorPath?: string;
}

/** A printer column. */
export interface CrdColumn extends JsonObject {
  name: string;
  type: string;
  format?: string;
  description?: string;
  priority?: number;
  jsonPath: string;
}

/** The conversion between versions. */
export interface CrdConversion extends JsonObject {
  strategy: string;
  webhook?: { clientConfig?: JsonObject; conversionReviewVersions?: string[] };
}

/** The observed state of a definition. */
export interface CrdStatus extends JsonObject {
  conditions?: CrdCondition[] | null;
  acceptedNames?: CrdNames;
  storedVersions?: string[];
}

/** A condition of a definition. */
export interface CrdCondition extends JsonObject {
  type: string;
  status: string;
  lastTransitionTime?: JsonValue;
  reason?: string;
  message?: string;
}

/** Whether the definition's `Established` condition is true, so that its kind is served. */
export function crdIsEstablished({ status }: Pick<Crd, 'status'>): boolean {
  const conditions = status?.conditions ?? [];
  return conditions.some(
    (condition) => condition.type === 'Established' && condition.status === 'True',
  );
}

/**
 * The prefix of the store's keys of the kind's objects. It is derived from the requested names,
 * which the definition's own name makes unique, rather than from the accepted ones.
 */
export function customPrefix({ spec }: Crd): string {
  return `/registry/${spec.group}/${spec.names.plural}/`;
}
