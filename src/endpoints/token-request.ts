import type { BoundObject } from '../authn/contract.ts';
import { isObject, type JsonObject } from '../base/json.ts';
import { type FieldError, invalid, notSupported } from '../meta/field-error.ts';
import { conflict, invalidObject, notFound } from '../meta/status.ts';
import { formatTime } from '../meta/times.ts';
import type { ApiObject } from '../meta/types.ts';
import { objectKey } from '../registry/object-codec.ts';
import { groupResourceOf } from '../registry/registry.ts';
import type { Entry } from '../watchcache/contract.ts';
import type { ApiCall } from './call.ts';
import { sendValue } from './respond.ts';
import { admitVirtual, virtualRequest } from './virtual-body.ts';

const defaultSeconds = 3600;
const minimumSeconds = 600;
const maximumSeconds = 2 ** 32;
const boundKinds: Readonly<Record<string, string>> = {
  Pod: 'pods',
  Secret: 'secrets',
  Node: 'nodes',
};

/** POST to a ServiceAccount's `token`: a signed token, not stored (API-6, AUTHN-6). */
export async function tokenRequestEndpoint(call: ApiCall): Promise<void> {
  const { context, target } = call;
  const { object, options } = await virtualRequest(call, 'authentication.v1.TokenRequest');
  const accounts = context.registry.caches.of(target.def);
  const account = await accounts.get(objectKey(target.namespace, target.name), undefined);
  if (account === undefined) throw notFound(groupResourceOf(target.def), target.name);
  expirationOf(call, object, specOf(object));
  await admitVirtual(call, { object, options });
  // Admission may have changed what is asked for.
  const spec = specOf(object);
  const seconds = expirationOf(call, object, spec);
  const audiences = Array.isArray(spec.audiences) ? spec.audiences.map(String) : [];
  const issued = await context.tokens.issue({
    namespace: target.namespace,
    serviceAccount: { name: target.name, uid: account.index.uid },
    bound: await boundObject(call, { object, spec }),
    audiences,
    expirationSeconds: seconds,
  });
  const annotation = context.dialect.label('issued-credential-id', 'authentication');
  call.audit?.annotate(annotation, issued.credentialId);
  const value: JsonObject = {
    kind: 'TokenRequest',
    apiVersion: object.apiVersion,
    metadata: {
      name: target.name,
      namespace: target.namespace,
      creationTimestamp: formatTime(context.clock.now()),
    },
    spec: { ...spec, audiences: [...issued.audiences], expirationSeconds: seconds },
    status: { token: issued.token, expirationTimestamp: formatTime(issued.expiresMs) },
  };
  await sendValue(call, { status: 201, value });
}

const specOf = (object: ApiObject): JsonObject => (isObject(object.spec) ? object.spec : {});

function expirationOf(call: ApiCall, object: ApiObject, spec: JsonObject): number {
  const given = Number(spec.expirationSeconds ?? defaultSeconds);
  const field = 'spec.expirationSeconds';
  const errors: FieldError[] = [];
  if (given < minimumSeconds)
    errors.push(invalid(field, given, 'may not specify a duration less than 10 minutes'));
  if (given > maximumSeconds)
    errors.push(invalid(field, given, 'may not specify a duration larger than 2^32 seconds'));
  if (errors.length === 0) return given;
  const group = object.apiVersion.split('/')[0] ?? '';
  throw invalidObject({ group, kind: 'TokenRequest' }, call.target.name, errors);
}

/** The object the token lives as long as; it must be there, with the uid given if one is. */
async function boundObject(
  call: ApiCall,
  { object, spec }: { object: ApiObject; spec: JsonObject },
): Promise<BoundObject | undefined> {
  const reference = spec.boundObjectRef;
  if (!isObject(reference)) return undefined;
  const kind = String(reference.kind ?? '');
  const name = String(reference.name ?? '');
  const resource = Object.hasOwn(boundKinds, kind) ? boundKinds[kind] : undefined;
  if (resource === undefined || reference.apiVersion !== 'v1') {
    const group = object.apiVersion.split('/')[0] ?? '';
    throw invalidObject({ group, kind: 'TokenRequest' }, call.target.name, [
      notSupported('spec.boundObjectRef.kind', kind, Object.keys(boundKinds)),
    ]);
  }
  const entry = await findBound(call, { resource, name });
  if (entry === undefined) throw notFound({ group: '', resource }, name);
  const uid = String(reference.uid ?? '');
  if (uid !== '' && uid !== entry.index.uid) {
    const why = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`;
    throw conflict({ group: '', resource }, name, why);
  }
  return { resource: resource as BoundObject['resource'], name, uid: entry.index.uid };
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
