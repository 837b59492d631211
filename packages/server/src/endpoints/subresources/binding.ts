import {
  type ApiObject,
  asApiObject,
  badRequest,
  conflict,
  type FieldError,
  invalidObject,
  notSupported,
  objectOf,
  required,
} from '@wheelhouse/machinery';
import { sendValue, successStatus } from '../../answer/respond.ts';
import { checkPathAgreement, preconditionFailed } from '../../registry/object-meta.ts';
import { consequentPermit } from '../../registry/permit.ts';
import { groupResourceOf } from '../../registry/registry.ts';
import { write } from '../../registry/write.ts';
import { decodeObject, readWrite } from '../body/decode-object.ts';
import {
  admitVirtual,
  recordFields,
  recordManager,
  type VirtualRequest,
  virtualRequest,
} from '../body/virtual-body.ts';
import type { ApiCall } from '../call.ts';
import { writeContext } from '../write.ts';

/** POST to `binding`: assigns a node to a Pod, once (API-6). */
export async function bindingEndpoint(call: ApiCall): Promise<void> {
  const request = await virtualRequest(call, 'core.v1.Binding');
  if (request.object.metadata.name !== call.target.name) {
    throw badRequest('name in URL does not match name in Binding object');
  }
  await recordManager(call, request, request.body);
  await bind(call, request, call);
}

/** POST to `bindings`: the same, with the Pod named by the object alone. */
export async function bindingsEndpoint(call: ApiCall): Promise<void> {
  const { context, target } = call;
  const { body, options } = await readWrite(call);
  const object = decodeObject(call, { body, fieldValidation: options.fieldValidation });
  checkPathAgreement(target, object);
  await recordFields(call, { object, options });
  const def = context.catalogue.snapshot().builtin('', 'pods');
  const [version] = def?.versions ?? [];
  if (def === undefined || version === undefined) throw new Error('the catalogue has no pods');
  const name = object.metadata.name ?? '';
  const pod = { def, version, namespace: target.namespace, name, subresource: 'binding' };
  await bind({ ...call, target: pod }, { object, options }, call);
}

/** @param bindingCall the original call, for admission */
async function bind(
  call: ApiCall,
  { object, options }: VirtualRequest,
  bindingCall: ApiCall,
): Promise<void> {
  const { context, target } = call;
  nodeOf(object);
  await admitVirtual(bindingCall, { object, options });
  // Admission may have changed the node.
  const node = nodeOf(object);
  if (target.name === '') throw badRequest('Name parameter required.');
  const bindingTarget = { ...target, subresource: 'binding' };
  const permit = consequentPermit(bindingCall.permit, 'update', bindingTarget);
  await write(context.registry, {
    operation: 'update',
    admission: 'done',
    target: bindingTarget,
    context: { ...writeContext(call, options), permit },
    transform: ({ current }) =>
      bound(call, asApiObject(current), { binding: object, node, dryRun: options.dryRun }),
    source: 'merged',
    onAbsent: 'refuse',
  });
  await sendValue(call, { status: 201, value: successStatus({ code: 201 }) });
}

/** The node that a Binding names. An invalid one is a 422, where kube-apiserver answers 500. */
function nodeOf(binding: ApiObject): string {
  const target = objectOf(binding.target);
  const [kind, name] = [target.kind ?? '', target.name];
  const errors: FieldError[] = [];
  if (kind !== '' && kind !== 'Node') {
    errors.push(notSupported('target.kind', kind, ['Node', '<empty>']));
  }
  const hasName = typeof name === 'string' && name !== '';
  if (!hasName) errors.push(required('target.name'));
  if (hasName && errors.length === 0) return name;
  throw invalidObject({ group: '', kind: 'Binding' }, binding.metadata.name ?? '', errors);
}

function checkPreconditions(
  call: ApiCall,
  pod: ApiObject,
  { binding, dryRun }: { readonly binding: ApiObject; readonly dryRun: boolean },
): void {
  const { uid = '', resourceVersion = '' } = binding.metadata;
  const mismatch = (
    expected: string,
    actual: string | undefined,
    what: 'UID' | 'ResourceVersion',
  ) => {
    if (expected === '' || expected === actual) return;
    const { store } = call.context.registry;
    throw preconditionFailed(call.target, { expected, actual: actual ?? '', what, store, dryRun });
  };
  mismatch(uid, pod.metadata.uid, 'UID');
  mismatch(resourceVersion, pod.metadata.resourceVersion, 'ResourceVersion');
}

function bound(
  call: ApiCall,
  pod: ApiObject,
  { binding, node, dryRun }: { binding: ApiObject; node: string; dryRun: boolean },
): ApiObject {
  checkPreconditions(call, pod, { binding, dryRun });
  const spec = objectOf(pod.spec);
  const { name } = call.target;
  const { group, resource } = groupResourceOf(call.target.def);
  const refuse = (why: string) =>
    conflict({ group, resource: `${resource}/binding` }, name, `pod ${name} ${why}`);
  if (pod.metadata.deletionTimestamp !== undefined) {
    throw refuse('is being deleted, cannot be assigned to a host');
  }
  if (typeof spec.nodeName === 'string' && spec.nodeName !== '') {
    throw refuse(`is already assigned to node ${JSON.stringify(spec.nodeName)}`);
  }
  if (Array.isArray(spec.schedulingGates) && spec.schedulingGates.length > 0) {
    throw refuse('has non-empty .spec.schedulingGates');
  }
  const annotations = { ...pod.metadata.annotations, ...binding.metadata.annotations };
  if (Object.keys(annotations).length > 0) pod.metadata.annotations = annotations;
  return { ...pod, spec: { ...spec, nodeName: node } };
}
