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
  const access: Access = { user, verb: 'get', name: '*', namespace: '*' };
  if (await mayRead(paramsOf(object, tools), access, tools)) return undefined;
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
  const verb = name === '' ? 'list' : 'get';
  const params = paramsOf(policy, tools);
  if (await mayRead(params, { user, verb, name, namespace }, tools)) return undefined;
  const lacks = `user ${showUser(user)} does not have "${verb}" permission`;
  const lacksAll =
    `to determine minimum required permissions and ${lacks} ` +
    'for all groups, versions and resources';
  if (policy === undefined) return `unable to get policy ${place.name} ${lacksAll}`;
  const { apiVersion, kind, resource } = params;
  return apiVersion !== '' && resource === '*'
    ? `unable to resolve paramKind &{${apiVersion} ${kind}} ${lacksAll}`
    : `${lacks} on the object referenced by paramRef`;
}

/** The kind of a policy's parameters and its resource; `*` if unknown. */
interface Params {
  readonly apiVersion: string;
  readonly kind: string;
  readonly resource: string;
}

function paramsOf(
  policy: Stored<ValidatingAdmissionPolicy> | undefined,
  tools: AdmissionTools,
): Params {
  const { apiVersion = '', kind = '' } = policy?.spec?.paramKind ?? {};
  const def = apiVersion === '' ? undefined : tools.defOfKind(apiVersion, kind);
  return { apiVersion, kind, resource: def?.resource ?? '*' };
}

interface Access {
  readonly user: UserInfo;
  readonly verb: 'get' | 'list';
  readonly name: string;
  readonly namespace: string;
}

/** Whether a user may read the parameters of a policy; of all kinds if theirs is unknown. */
async function mayRead(
  { apiVersion, resource }: Params,
  access: Access,
  tools: AdmissionTools,
): Promise<boolean> {
  const parsed = apiVersion === '' ? undefined : parseApiVersion(apiVersion);
  const { decision } = await tools.authorize({
    ...access,
    group: parsed?.group ?? '*',
    version: parsed?.version ?? '*',
    resource,
    subresource: '',
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
