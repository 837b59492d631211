import { at, objectAt, type Stored, same, textAt } from '@wheelhouse/kinds';
import type {
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
} from '@wheelhouse/kinds/types/admissionregistration/v1';
import {
  type ApiObject,
  forbiddenField,
  invalidObject,
  parseApiVersion,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { AdmissionCall } from '../registry/contract.ts';
import { groupKindOf } from '../registry/registry.ts';
import type { AdmissionTools } from './tools.ts';

/** Policies by the resources of their bindings, with the stem of their group. */
const policiesOf: Readonly<Record<string, string>> = {
  validatingadmissionpolicybindings: 'validatingadmissionpolicies.admissionregistration',
  mutatingadmissionpolicybindings: 'mutatingadmissionpolicies.admissionregistration',
};

/** The group that may do anything. */
const privilegedGroup = 'system:masters';

/**
 * Requires the author of a policy or binding to have read access to its parameters, which the
 * policy's messages could disclose (ADM-3). Throws 422 as for any invalid field.
 */
export async function checkParamAccess(call: AdmissionCall, tools: AdmissionTools): Promise<void> {
  const { object, old, target, context } = call;
  if (object === undefined || call.operation === 'DELETE' || target.subresource !== '') return;
  if (context.user.groups.includes(privilegedGroup)) return;
  const isBinding = Object.hasOwn(policiesOf, target.def.resource);
  const why = isBinding
    ? await bindingProblem(object, call, tools)
    : await policyProblem({ object, old }, context.user, tools);
  if (why === undefined) return;
  const error = forbiddenField(isBinding ? 'spec.paramRef' : 'spec.paramKind', why);
  throw invalidObject(groupKindOf(target.def), object.metadata.name ?? '', [error]);
}

async function policyProblem(
  { object, old }: { readonly object: ApiObject; readonly old: ApiObject | undefined },
  user: UserInfo,
  tools: AdmissionTools,
): Promise<string | undefined> {
  const paramKind = objectAt(object, 'spec', 'paramKind');
  if (paramKind === undefined || same(paramKind, at(old, 'spec', 'paramKind'))) return undefined;
  const access = { user, tools, name: '*', namespace: '*' };
  if (await mayRead(object, access)) return undefined;
  const [kind, apiVersion] = [textAt(paramKind, 'kind'), textAt(paramKind, 'apiVersion')];
  const shown = `(kind=${kind}, apiVersion=${apiVersion})`;
  return (
    `user ${showUser(user)} must have "get" permission on all objects of the referenced ` +
    `paramKind ${shown}`
  );
}

async function bindingProblem(
  binding: Stored<ValidatingAdmissionPolicyBinding>,
  { target, context }: AdmissionCall,
  tools: AdmissionTools,
): Promise<string | undefined> {
  const paramRef = binding.spec?.paramRef;
  if (paramRef === undefined) return undefined;
  const { user } = context;
  const place = { namespace: '', name: binding.spec?.policyName ?? '' };
  const policy = await tools.objects.get(policiesOf[target.def.resource] ?? '', place);
  const [name, namespace] = [paramRef.name ?? '', paramRef.namespace ?? ''];
  if (await mayRead(policy, { user, tools, name, namespace })) return undefined;
  return `user ${showUser(user)} does not have "get" permission on the object referenced by paramRef`;
}

/** Whether a user may read the parameters of a policy; of all kinds if theirs is unknown. */
async function mayRead(
  policy: Stored<ValidatingAdmissionPolicy> | undefined,
  access: {
    readonly user: UserInfo;
    readonly tools: AdmissionTools;
    readonly name: string;
    readonly namespace: string;
  },
): Promise<boolean> {
  const { user, tools, name, namespace } = access;
  const apiVersion = policy?.spec?.paramKind?.apiVersion ?? '';
  const parsed = apiVersion === '' ? undefined : parseApiVersion(apiVersion);
  const def =
    parsed === undefined
      ? undefined
      : tools.defOfKind(apiVersion, policy?.spec?.paramKind?.kind ?? '');
  const { decision } = await tools.authorize({
    user,
    verb: 'get',
    group: parsed?.group ?? '*',
    version: parsed?.version ?? '*',
    resource: def?.resource ?? '*',
    subresource: '',
    namespace,
    name,
    isResourceRequest: true,
    path: '',
  });
  return decision === 'allow';
}

/** A user as Go prints it: `&{jane  [devs] map[]}`. */
function showUser({ name, uid, groups, extra }: UserInfo): string {
  const more = Object.keys(extra)
    .sort()
    .map((key) => `${key}:[${(extra[key] ?? []).join(' ')}]`);
  return `&{${name} ${uid} [${groups.join(' ')}] map[${more.join(' ')}]}`;
}
