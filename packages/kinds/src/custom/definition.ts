import { type ApiObject, isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import type { SchemaProps } from '../apiextensions/schema-props.ts';

/** A CustomResourceDefinition (v1) as its decoder leaves it. */
export interface Crd extends ApiObject {
  spec: CrdSpec;
  status?: CrdStatus;
}

/**
 * A decoded definition; its kind's decoder has given it a spec.
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

/** Where replicas stand in the object, as simple paths (`.spec.replicas`). */
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

/** Whether a condition of the definition holds. */
export function crdConditionIsTrue(crd: Crd, type: string): boolean {
  return (crd.status?.conditions ?? []).some((one) => one.type === type && one.status === 'True');
}

/**
 * Where objects of the definition are stored. It follows from the definition's own name, which no
 * other definition has, and not from the names that its status accepts.
 */
export function customPrefix({ spec }: Crd): string {
  return `/registry/${spec.group}/${spec.names.plural}/`;
}
