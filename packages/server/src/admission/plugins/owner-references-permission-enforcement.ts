import {
  type ApiObject,
  jsonEqual,
  type OwnerReference,
  parseApiVersion,
  qualifiedResource,
} from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import type { AdmissionPlugin } from '../chain.ts';
import { type AdmissionTools, checkAccess, refusal } from '../tools.ts';

/**
 * Requires permission to delete an object to set its owners, and permission to update an owner's
 * finalizers to block its deletion (ADM-1).
 */
export function ownerReferencesPermissionEnforcement(tools: AdmissionTools): AdmissionPlugin {
  return {
    name: 'OwnerReferencesPermissionEnforcement',
    async validate(call) {
      const { operation, object, old, target } = call;
      if (operation === 'DELETE' || object === undefined) return;
      // The garbage collector removes owners that are gone.
      if (call.context.origin === 'server') return;
      if (qualifiedResource(call.target.def) === 'pods' && target.subresource === 'status') return;
      const [owners, before] = [ownersOf(object), ownersOf(old)];
      if (jsonEqual(owners, before)) return;
      if (operation === 'UPDATE') await checkDeletion(tools, call);
      const blocking = newlyBlocking(owners, before);
      if (blocking.length === 0 || (await mayFinalizeAnything(tools, call))) return;
      for (const owner of blocking) await checkFinalizers(tools, { call, owner });
    },
  };
}

const ownersOf = (object: ApiObject | undefined) => object?.metadata.ownerReferences ?? [];

/** kube-apiserver prints its nil error here. */
const because = (reason: string) => `${reason}, <nil>`;

async function checkDeletion(tools: AdmissionTools, call: AdmissionCall): Promise<void> {
  const { def, namespace, subresource } = call.target;
  const { allowed, reason } = await checkAccess(tools, {
    user: call.context.user,
    verb: 'delete',
    group: def.group,
    resource: def.resource,
    subresource,
    namespace,
    name: call.name,
  });
  if (allowed) return;
  throw refusal(call, `cannot set an ownerRef on a resource you can't delete: ${because(reason)}`);
}

function newlyBlocking(
  owners: readonly OwnerReference[],
  before: readonly OwnerReference[],
): readonly OwnerReference[] {
  const blocked = new Set(
    before.filter((owner) => owner.blockOwnerDeletion === true).map(({ uid }) => uid),
  );
  return owners.filter((owner) => owner.blockOwnerDeletion === true && !blocked.has(owner.uid));
}

/** Whether the user may update the finalizers of all objects, even of unknown kinds. */
async function mayFinalizeAnything(tools: AdmissionTools, call: AdmissionCall): Promise<boolean> {
  const { user } = call.context;
  const everything = { group: '*', resource: '*', subresource: 'finalizers', name: '*' };
  return (await checkAccess(tools, { user, verb: 'update', ...everything })).allowed;
}

async function checkFinalizers(
  tools: AdmissionTools,
  { call, owner }: { readonly call: AdmissionCall; readonly owner: OwnerReference },
): Promise<void> {
  const def = tools.defOfKind(owner.apiVersion, owner.kind);
  if (def === undefined) {
    const version = parseApiVersion(owner.apiVersion);
    const kind = JSON.stringify(owner.kind);
    const why = `no matches for kind ${kind} in version ${JSON.stringify(version === undefined ? '' : owner.apiVersion)}`;
    throw refusal(
      call,
      `cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion ${owner.apiVersion} Kind ${owner.kind}: ${why}`,
    );
  }
  const { allowed, reason } = await checkAccess(tools, {
    user: call.context.user,
    verb: 'update',
    group: def.group,
    resource: def.resource,
    subresource: 'finalizers',
    namespace: def.scope === 'Namespaced' ? call.target.namespace : '',
    name: owner.name,
  });
  if (allowed) return;
  throw refusal(
    call,
    `cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: ${because(reason)}`,
  );
}
