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
  if (!isCrd(object)) throw new TypeError('the object is no CustomResourceDefinition');
  return object;
}

const isCrd = (object: ApiObject): object is Crd => isObject(object['spec']);

export interface CrdSpec extends JsonObject {
  group: string;
  names: CrdNames;
  scope: string;
  versions: CrdVersion[];
  conversion?: CrdConversion;
  preserveUnknownFields?: boolean;
}

export interface CrdNames extends JsonObject {
  plural: string;
  singular?: string;
  kind: string;
  listKind?: string;
  shortNames?: string[];
  categories?: string[];
}

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

export interface CrdSubresources extends JsonObject {
  status?: JsonObject;
  scale?: CrdScale;
}

/** Where objects keep their replicas, as simple paths (`.spec.replicas`). */
export interface CrdScale extends JsonObject {
  specReplicasPath: string;
  statusReplicasPath: string;
  labelSelectorPath?: string;
}

export interface CrdColumn extends JsonObject {
  name: string;
  type: string;
  format?: string;
  description?: string;
  priority?: number;
  jsonPath: string;
}

export interface CrdConversion extends JsonObject {
  strategy: string;
  webhook?: { clientConfig?: JsonObject; conversionReviewVersions?: string[] };
}

export interface CrdStatus extends JsonObject {
  conditions?: CrdCondition[] | null;
  acceptedNames?: CrdNames;
  storedVersions?: string[];
}

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
  return conditions.some((one) => one.type === 'Established' && one.status === 'True');
}

/**
 * Where objects of the definition are stored. The prefix depends on the definition's own name,
 * which is unique, and not on the names that its status accepts.
 */
export function customPrefix({ spec }: Crd): string {
  return `/registry/${spec.group}/${spec.names.plural}/`;
}
