import {
  boundedEscalation,
  escalationMessage,
  type PolicyRule,
  policyRule,
  rulesSteps,
  textAt,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  badRequest,
  type Clock,
  type Dialect,
  forbidden,
  isObject,
  type MaybePromise,
  member,
  notFound,
  objectOf,
  runInSlices,
} from '@wheelhouse/machinery';
import type { AdmissionPlugin } from '../../../admission/chain.ts';
import { onlyCollectorsFieldsDiffer } from '../../../admission/objects.ts';
import type { AdmissionCall } from '../../../registry/contract.ts';
import type { Attributes, AuthorizationResult } from '../../../registry/permit.ts';
import { groupResourceOf } from '../../../registry/registry.ts';
import type { RbacAuthorizer } from './rbac-authorizer.ts';

/** The parts of authorization that the check uses. */
export interface EscalationPort {
  decide(attributes: Attributes): MaybePromise<AuthorizationResult>;
  /** Roles and bindings as new as the store. */
  rules(): Promise<Pick<RbacAuthorizer, 'rulesFor' | 'rulesOfRole'>>;
}

const privilegedGroup = 'system:masters';

const everything: readonly PolicyRule[] = [
  policyRule({ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }),
  policyRule({ verbs: ['*'], nonResourceURLs: ['*'] }),
];

/**
 * Prevents privilege escalation (AUTHZ-5): the writer must hold the rules of a role, or of the role
 * that a binding refers to, in that namespace or cluster-wide, unless the writer may `escalate` or
 * `bind` the role. No flag disables the check, because kube-apiserver implements it outside of
 * admission. It runs last in the mutating phase, on the final object and before validation.
 */
export function escalationCheck(options: {
  readonly dialect: Dialect;
  readonly port: EscalationPort;
  readonly clock: Pick<Clock, 'monotonic'>;
}): AdmissionPlugin {
  const { dialect, port, clock } = options;
  const group = dialect.group('rbac.authorization');
  return {
    name: 'RBACEscalation',
    isInternal: true,
    concerns: (def) => def.group === group,
    mutate(call) {
      const { def, subresource } = call.target;
      if (subresource !== '' || call.operation === 'DELETE') return undefined;
      const { object, old, context } = call;
      if (object === undefined || context.user.groups.includes(privilegedGroup)) return undefined;
      if (old !== undefined && onlyCollectorsFieldsDiffer(object, old)) return undefined;
      const isRole = def.resource === 'roles' || def.resource === 'clusterroles';
      const check = { port, clock, call, object };
      return isRole ? checkRole(check) : checkBinding(check);
    },
  };
}

interface Check {
  readonly port: EscalationPort;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly call: AdmissionCall;
  readonly object: ApiObject;
}

async function checkRole({ port, clock, call, object }: Check): Promise<void> {
  const { def, namespace, name } = call.target;
  const attributes = { verb: 'escalate', resource: def.resource, namespace, name };
  if (await isAllowed(port, call, attributes)) return;
  const required = await runInSlices(rulesSteps(object), clock);
  await requireGranted({ port, clock, call, required });
  if (!hasAggregation(object) && !hasAggregation(call.old)) return;
  const why = 'must have cluster-admin privileges to use the aggregationRule';
  await requireGranted({ port, clock, call, required: everything, why });
}

async function checkBinding({ port, clock, call, object }: Check): Promise<void> {
  const roleRef = objectOf(member(object, 'roleRef'));
  const kind = textAt(roleRef, 'kind');
  const name = textAt(roleRef, 'name');
  // Validation rejects references to other kinds, and those without a name.
  if ((kind !== 'Role' && kind !== 'ClusterRole') || name === '') return;
  const { namespace } = call.target;
  const resource = kind === 'Role' ? 'roles' : 'clusterroles';
  if (await isAllowed(port, call, { verb: 'bind', resource, namespace, name })) return;
  if (kind === 'Role' && namespace === '') throw badRequest('Namespace parameter required.');
  const { rules, errors } = (await port.rules()).rulesOfRole({ kind, name }, namespace);
  // The error names the resource of the request, not of the role, as in kube-apiserver.
  if (errors.length > 0) throw notFound(groupResourceOf(call.target.def), name);
  await requireGranted({ port, clock, call, required: rules });
}

async function isAllowed(
  port: EscalationPort,
  call: AdmissionCall,
  attributes: Pick<Attributes, 'verb' | 'resource' | 'namespace' | 'name'>,
): Promise<boolean> {
  const result = await port.decide({
    ...attributes,
    user: call.context.user,
    isResourceRequest: true,
    group: call.target.def.group,
    version: '*',
    subresource: '',
    path: '',
  });
  return result.decision === 'allow';
}

async function requireGranted(
  options: Omit<Check, 'object'> & {
    readonly required: readonly PolicyRule[];
    /** Replaces the list of missing rules in the message. */
    readonly why?: string;
  },
): Promise<void> {
  const { port, clock, call, required } = options;
  const { user } = call.context;
  const granted = (await port.rules()).rulesFor(user, call.target.namespace);
  const compared = runInSlices(boundedEscalation(granted.rules, required), clock);
  const coverage = compared instanceof Promise ? await compared : compared;
  if (coverage.covered) return;
  const why =
    options.why ?? escalationMessage({ user, coverage, resolutionErrors: granted.errors });
  const name = call.object?.metadata.name ?? call.name;
  throw forbidden(groupResourceOf(call.target.def), name, why);
}

function hasAggregation(object: ApiObject | undefined): boolean {
  const rule = object === undefined ? undefined : member(object, 'aggregationRule');
  if (!isObject(rule)) return false;
  const selectors = member(rule, 'clusterRoleSelectors');
  return Array.isArray(selectors) && selectors.length > 0;
}
