import {
  apiVersionIn,
  type CatalogueSnapshot,
  fromStorage,
  type ResourceDef,
  schemaOf,
  toStorage,
  type VersionDef,
  versionNamed,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  apiVersionOf,
  asApiObject,
  cloneJsonSteps,
  internalError,
  type JsonObject,
  type MaybePromise,
  runInSlices,
  textOf,
} from '@wheelhouse/machinery';
import { DecodeError, decodeTypedSteps, type FoundPaths, type Schema } from '@wheelhouse/schema';
import type { AdmissionCall } from '../../registry/contract.ts';
import { ConversionFailure } from '../../registry/conversion/converted-kinds.ts';
import type { AdmissionTools } from '../tools.ts';
import {
  equivalentsOf,
  type KindFact,
  matchesRule,
  type OperationRule,
  type RequestFacts,
} from './rules.ts';

/** How a resource is served in one version. */
export interface Served {
  readonly def: ResourceDef;
  readonly version: VersionDef;
}

/**
 * Returns a copy of the object in the version that a resource serves, made in slices. The object may
 * be in any of its versions, including the stored one; an object of another kind, such as a Scale or
 * Eviction, has no other versions here. The failure of a conversion webhook becomes an internal
 * error, as in kube-apiserver.
 */
export function convertTo(
  object: ApiObject,
  target: Served,
  tools: Pick<AdmissionTools, 'clock' | 'snapshot'>,
): MaybePromise<ApiObject> {
  const copy = runInSlices(cloneJsonSteps<ApiObject>(object), tools.clock);
  const convert = (whole: ApiObject) => convertCopy(whole, target, tools.snapshot());
  return copy instanceof Promise ? copy.then(convert) : convert(copy);
}

function convertCopy(
  copy: ApiObject,
  { def, version }: Served,
  snapshot: CatalogueSnapshot,
): MaybePromise<ApiObject> {
  const apiVersion = apiVersionIn(def, version);
  if (copy.apiVersion === apiVersion) return copy;
  const { storage } = def;
  if (copy.kind !== def.kind && copy.kind !== storage.kind) return copy;
  const converter = def.behavior.converter;
  if (converter !== undefined) {
    return converter
      .convert([copy], apiVersion)
      .then(([converted]) => asApiObject(converted), asInternal);
  }
  if (copy.apiVersion === storage.apiVersion) return fromStorage(def, version, copy);
  const from = servedAs(copy, def, snapshot);
  return fromStorage(def, version, toStorage(from.def, from.version, copy));
}

function asInternal(error: unknown): never {
  throw error instanceof ConversionFailure ? internalError(error.message, error) : error;
}

function servedAs(object: ApiObject, like: ResourceDef, snapshot: CatalogueSnapshot): Served {
  for (const def of snapshot.defs) {
    if (def.storage.prefix !== like.storage.prefix) continue;
    const version = versionNamed(def, object.apiVersion);
    if (version !== undefined) return { def, version };
  }
  throw internalError(`unable to convert from ${object.apiVersion}: unknown kind ${object.kind}`);
}

/** A request as webhooks and policies see it. */
export interface ReviewedRequest {
  readonly call: AdmissionCall;
  readonly facts: RequestFacts;
  readonly tools: AdmissionTools;
}

/**
 * The served form in which rules match a request: its own, or, with match policy Equivalent,
 * another resource or version of the same objects. Earlier rules take precedence. Undefined if none
 * matches.
 */
export function formByRules(
  rules: readonly OperationRule[],
  matchPolicy: 'Exact' | 'Equivalent',
  { call, facts, tools }: ReviewedRequest,
): Served | undefined {
  if (rules.some((rule) => matchesRule(rule, facts))) return call.target;
  if (rules.length === 0 || matchPolicy === 'Exact') return undefined;
  const equivalents = equivalentsOf(tools.snapshot(), call.target);
  for (const rule of rules) {
    const equivalent = equivalents.find(({ resource }) => matchesRule(rule, facts, resource));
    if (equivalent !== undefined) return equivalent;
  }
  return undefined;
}

/**
 * An object that was changed from outside, in the form of its kind: types checked, unknown members
 * dropped, defaults set; in steps for built-in kinds, and in one piece by the decoder of a custom
 * kind. May modify the given object. Throws DecodeError.
 */
export function* redecodedSteps(
  object: JsonObject,
  at: {
    readonly served: Served;
    readonly kind: KindFact;
    /** Receives the fields that a built-in type does not have. */
    readonly unknown?: FoundPaths;
  },
): Generator<void, ApiObject> {
  const { served, kind, unknown } = at;
  const { def, version } = served;
  if (kind.kind !== def.kind) {
    return asApiObject(yield* decodeTypedSteps(schemaFor({ served, kind }), object, { unknown }));
  }
  if (version.decode !== undefined) {
    version.decode(object);
    return asApiObject(object);
  }
  const decoded = asApiObject(yield* decodeTypedSteps(version.schema, object, { unknown }));
  if (version.defaultSteps === undefined) version.defaults?.(decoded);
  else yield* version.defaultSteps(decoded);
  return decoded;
}

/**
 * A patched object with its type, which the patch may have removed but not changed: for another
 * type of a built-in kind, throws DecodeError. An object of a custom kind must state a type, which
 * its validation compares.
 */
export function withType(
  object: JsonObject,
  { served, kind }: { readonly served: Served; readonly kind: KindFact },
): JsonObject {
  if (served.def.behavior.bodies === 'unstructured') {
    if (textOf(object['kind']) === '') throw new DecodeError("Object 'Kind' is missing");
    if (textOf(object['apiVersion']) === '')
      throw new DecodeError("Object 'apiVersion' is missing");
    return object;
  }
  const own = { apiVersion: apiVersionOf(kind), kind: kind.kind };
  const apiVersion = textOf(object['apiVersion']) || own.apiVersion;
  const named = textOf(object['kind']) || own.kind;
  if (apiVersion === own.apiVersion && named === own.kind) return { ...object, ...own };
  throw new DecodeError(`unable to convert from ${apiVersion}: unknown kind ${named}`);
}

/** The schema of an object, or of a subresource's own kind. */
export function schemaFor(at: { readonly served: Served; readonly kind: KindFact }): Schema {
  const { group, version, kind } = at.kind;
  if (kind === at.served.def.kind) return at.served.version.schema;
  const stem = group === '' ? 'core' : (group.split('.', 1)[0] ?? group);
  return schemaOf(`${stem}.${version}.${kind}`);
}

/** Replaces the members of an object in place, so that every holder sees the new content. */
export function replaceContent(target: JsonObject, content: JsonObject): void {
  for (const name of Object.keys(target)) delete target[name];
  Object.assign(target, content);
}
