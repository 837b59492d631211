import { schemaOf, subresourcesOf, type VersionDef } from '@wheelhouse/kinds';
import { type ApiObject, isObject, jsonObject, type Pace, setMember } from '@wheelhouse/machinery';
import type { Target } from '../../registry/contract.ts';
import { checkNamespace } from '../../registry/object-meta.ts';
import type { WriteOptions } from '../../request/options.ts';
import type { ApiCall } from '../call.ts';
import { writeContext } from '../write.ts';
import { decodeObject, readWrite } from './decode-object.ts';

/** A POST to a virtual subresource: an object of its own kind, and the options of a create. */
export interface VirtualRequest {
  readonly object: ApiObject;
  readonly options: WriteOptions;
}

/** Options for the bodies of a virtual subresource. */
interface VirtualBodyOptions {
  /** An older apiVersion with the same schema, which is accepted too. */
  readonly alike?: string;
  /** Fills absent fields of a decoded body. */
  readonly defaults?: (object: ApiObject) => void;
}

/** One value per type, because compiled decoders are cached by it. */
const forms = new Map<string, VersionDef>();

function formOf(typeName: string, version: string, { defaults }: VirtualBodyOptions): VersionDef {
  const cached = forms.get(typeName);
  if (cached !== undefined) return cached;
  const filled = defaults === undefined ? {} : { defaults };
  const form = { version, served: true, schema: schemaOf(typeName), ...filled };
  forms.set(typeName, form);
  return form;
}

/**
 * Decodes the body of a virtual subresource (API-6), whose kind is not the resource's: an Eviction
 * of a Pod, a TokenRequest of a ServiceAccount.
 * @param typeName names the schema (`policy.v1.Eviction`)
 */
export async function virtualRequest(
  call: ApiCall,
  typeName: string,
  bodyOptions: VirtualBodyOptions = {},
): Promise<VirtualRequest & { readonly body: Target }> {
  const { target } = call;
  const subresources = subresourcesOf(target.def, target.version.version);
  const sub = subresources.find(({ name }) => name === target.subresource);
  if (sub?.kind === undefined) throw new Error(`${target.subresource} has no kind of its own`);
  const { group, version, kind } = sub.kind;
  const form = formOf(typeName, version, bodyOptions);
  const def = { ...target.def, group, kind, versions: [form] };
  const body: Target = { ...target, def, version: form };
  const { body: decoded, options } = await readWrite({ ...call, target: body });
  if (isObject(decoded.value) && decoded.value.apiVersion === bodyOptions.alike) {
    delete decoded.value.apiVersion;
  }
  const { fieldValidation } = options;
  const object = decodeObject({ ...call, target: body }, { body: decoded, fieldValidation });
  checkNamespace(target, object);
  return { object, options, body };
}

/** Removes the metadata that only the server sets from an object that is never stored. */
function wipeMetadata({ metadata }: ApiObject): void {
  if (metadata.creationTimestamp !== undefined) {
    setMember(jsonObject(metadata), 'creationTimestamp', null);
  }
  delete metadata.uid;
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  delete metadata.selfLink;
}

/**
 * Removes the metadata that only the server sets from an object that is never stored, and records
 * its field manager, as for other objects.
 */
export async function recordFields(
  call: ApiCall,
  request: VirtualRequest & { readonly pace?: Pace | undefined },
  target: Target = call.target,
): Promise<void> {
  wipeMetadata(request.object);
  await recordManager(call, request, target);
}

/** Records the field manager of an object that is never stored, whose metadata is kept. */
export async function recordManager(
  call: ApiCall,
  { object, options, pace }: VirtualRequest & { readonly pace?: Pace | undefined },
  target: Target,
): Promise<void> {
  delete object.metadata.managedFields;
  await call.context.registry.fieldManager.recordUpdate({
    target,
    live: undefined,
    object,
    manager: writeContext(call, options).fieldManager,
    nowMs: call.context.clock.now(),
    pace,
  });
}

/** Runs admission for a POST to a virtual subresource, as the creation of its object (ADM-1). */
export async function admitVirtual(call: ApiCall, request: VirtualRequest): Promise<void> {
  const { mutate, validate } = virtualAdmission(call, request);
  await mutate();
  await validate();
}

/** The two halves of `admitVirtual`, for endpoints that validate the object between them. */
export function virtualAdmission(call: ApiCall, { object, options }: VirtualRequest) {
  const { admission } = call.context.registry;
  const admitted = {
    operation: 'CREATE' as const,
    target: call.target,
    context: writeContext(call, options),
    // The paths of `bindings` and of reviews contain no name: the object's own name counts.
    name: call.target.name || (object.metadata.name ?? ''),
    object,
    old: undefined,
    attempt: 1,
  };
  return {
    mutate: async () => admission.mutate(admitted),
    validate: async () => admission.validate(admitted),
  };
}
