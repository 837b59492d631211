import { tokenLifetimeErrors } from '@wheelhouse/kinds';
import {
  type ApiObject,
  badRequest,
  conflict,
  type FieldError,
  formatTime,
  goQuoted,
  invalid,
  invalidObject,
  isObject,
  type JsonObject,
  jsonObject,
  notFound,
  pathSegment,
} from '@wheelhouse/machinery';
import { sendUnstored } from '../../answer/respond.ts';
import type { BoundObject } from '../../gates/authn/contract.ts';
import { decodedInSlices, objectKey } from '../../registry/object-codec.ts';
import { existingEntry } from '../../registry/registry.ts';
import type { Entry } from '../../watchcache/entry.ts';
import { recordFields, virtualAdmission, virtualRequest } from '../body/virtual-body.ts';
import type { ApiCall } from '../call.ts';

const defaultSeconds = 3600;
const boundKinds: Readonly<Record<string, string>> = {
  Pod: 'pods',
  Secret: 'secrets',
  Node: 'nodes',
};

/**
 * POST to a ServiceAccount's `token`: answers with a signed token, which is not stored (API-6,
 * AUTHN-6).
 */
export async function tokenRequestEndpoint(call: ApiCall): Promise<void> {
  const { context, target } = call;
  const request = await virtualRequest(call, 'authentication.v1.TokenRequest', { defaults });
  const { object, options } = request;
  await recordFields(call, request, request.body);
  const admission = virtualAdmission(call, { object, options });
  await admission.mutate();
  checkName(call, object);
  const account = await existingEntry(context.registry, target);
  const audiences = completeRequest(call, object);
  const spec = specOf(object);
  const seconds = expirationOf(object, spec);
  await admission.validate();
  const issued = await context.tokens.issue({
    namespace: target.namespace,
    serviceAccount: { name: target.name, uid: account.index.uid },
    bound: await boundObject(call, spec),
    audiences,
    expirationSeconds: seconds,
  });
  if (issued.expirationSeconds < seconds) {
    call.warnings.add(
      `requested expiration of ${seconds} seconds shortened to ${issued.expirationSeconds} seconds`,
    );
  }
  const annotation = context.dialect.label('issued-credential-id', 'authentication');
  if (issued.credentialId !== undefined) call.audit?.annotate(annotation, issued.credentialId);
  const value: JsonObject = {
    kind: 'TokenRequest',
    apiVersion: object.apiVersion,
    metadata: jsonObject(object.metadata),
    spec: { ...spec, expirationSeconds: issued.expirationSeconds },
    status: { token: issued.token, expirationTimestamp: formatTime(issued.expiresMs) },
  };
  await sendUnstored(call, { status: 201, object: value, target: request.body });
}

const specOf = (object: ApiObject): JsonObject => (isObject(object.spec) ? object.spec : {});

/**
 * Sets the metadata, the default audiences, and an empty status, which validating admission sees.
 * Returns the audiences.
 */
function completeRequest({ context, target }: ApiCall, object: ApiObject): readonly string[] {
  object.metadata.name = target.name;
  object.metadata.namespace = target.namespace;
  object.metadata.creationTimestamp = formatTime(context.clock.now());
  object.status = { token: '', expirationTimestamp: null };
  const { audiences } = specOf(object);
  const stated = Array.isArray(audiences) ? audiences.map(String) : [];
  const named = stated.length > 0 ? stated : [...context.tokens.audiences];
  object.spec = { ...specOf(object), audiences: named };
  return named;
}

/** Throws 422 if the body names another account than the path. */
function checkName({ target }: ApiCall, object: ApiObject): void {
  const stated = object.metadata.name ?? '';
  if (stated === '' || stated === target.name) return;
  const why = 'must match the service account name if specified';
  refuseInvalid(object, target.name, [invalid('metadata.name', stated, why)]);
}

function refuseInvalid(object: ApiObject, name: string, errors: readonly FieldError[]): void {
  if (errors.length === 0) return;
  const group = object.apiVersion.split('/')[0] ?? '';
  throw invalidObject({ group, kind: 'TokenRequest' }, name, errors);
}

function defaults(object: ApiObject): void {
  object.spec = { ...specOf(object), expirationSeconds: expirationIn(specOf(object)) };
}

const expirationIn = (spec: JsonObject) => Number(spec.expirationSeconds ?? defaultSeconds);

function expirationOf(object: ApiObject, spec: JsonObject): number {
  const seconds = expirationIn(spec);
  refuseInvalid(object, '', tokenLifetimeErrors('spec.expirationSeconds', seconds));
  return seconds;
}

/** The object that the token is bound to, which must exist and have the stated uid, if any. */
async function boundObject(call: ApiCall, spec: JsonObject): Promise<BoundObject | undefined> {
  const reference = spec.boundObjectRef;
  if (!isObject(reference)) return undefined;
  const kind = String(reference.kind ?? '');
  const name = String(reference.name ?? '');
  const { group, version } = groupVersionOf(String(reference.apiVersion ?? ''));
  const resource = Object.hasOwn(boundKinds, kind) ? boundKinds[kind] : undefined;
  if (resource === undefined || group !== '') {
    throw badRequest(`cannot bind token to object of type ${group}/${version}, Kind=${kind}`);
  }
  const { features } = call.context;
  if (resource === 'nodes' && !features.enabled('ServiceAccountTokenNodeBinding')) {
    const gate = '"ServiceAccountTokenNodeBinding"';
    throw badRequest(`cannot bind token to a Node object as the ${gate} feature-gate is disabled`);
  }
  if (name === '') throw badRequest('Name parameter required.');
  const faults = pathSegment(name);
  if (faults.length > 0) {
    throw badRequest(`Name parameter invalid: ${goQuoted(name)}: ${faults.join(';')}`);
  }
  const entry = await findBound(call, { resource, name });
  if (entry === undefined) throw notFound({ group: '', resource }, name);
  const node = resource === 'pods' ? await nodeOfPod(call, entry) : undefined;
  const uid = String(reference.uid ?? '');
  if (uid !== '' && uid !== entry.index.uid) {
    const why = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`;
    throw conflict({ group: '', resource: kind }, name, why);
  }
  const bound = { resource: resource as BoundObject['resource'], name, uid: entry.index.uid };
  return node === undefined ? bound : { ...bound, node };
}

/** Parses an apiVersion; a malformed one counts as empty. */
function groupVersionOf(apiVersion: string): { group: string; version: string } {
  const [first = '', second, ...more] = apiVersion.split('/');
  if (more.length > 0) return { group: '', version: '' };
  return second === undefined ? { group: '', version: first } : { group: first, version: second };
}

/** Checks that a pod uses the account, and returns the pod's node for the token. */
async function nodeOfPod(call: ApiCall, entry: Entry): Promise<BoundObject['node']> {
  const spec = specOf(await decodedInSlices(entry, call.context.clock));
  if (spec.serviceAccountName !== call.target.name) {
    const account = goQuoted(call.target.name);
    throw badRequest(
      `cannot bind token for serviceaccount ${account} to pod running with different serviceaccount name.`,
    );
  }
  const name = typeof spec.nodeName === 'string' ? spec.nodeName : '';
  const includesNode = call.context.features.enabled('ServiceAccountTokenPodNodeInfo');
  if (name === '' || !includesNode) return undefined;
  const node = await findBound(call, { resource: 'nodes', name });
  return { name, uid: node?.index.uid ?? '' };
}

async function findBound(
  call: ApiCall,
  at: { resource: string; name: string },
): Promise<Entry | undefined> {
  const { catalogue, registry } = call.context;
  const def = catalogue.snapshot().builtin('', at.resource);
  if (def === undefined) return undefined;
  const namespace = def.scope === 'Namespaced' ? call.target.namespace : '';
  return registry.caches.of(def).get(objectKey(namespace, at.name), undefined);
}
