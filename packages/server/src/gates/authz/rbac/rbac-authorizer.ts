import type { PolicyRule } from '@wheelhouse/kinds';
import {
  aggregateText,
  type Clock,
  type Dialect,
  runInSlices,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { Attributes, AuthorizationResult } from '../../../registry/permit.ts';
import type { Authorizer } from '../authorization.ts';
import type { RbacChanges } from './rbac-changes.ts';
import { describeGrant, type Grant, type RoleSlot, ruleAllows } from './rbac-index.ts';

/** The rules that apply to a user, and errors that may hide further rules. */
export interface RulesForUser {
  readonly rules: readonly PolicyRule[];
  readonly errors: readonly string[];
  /** `partial`: rules are omitted; an authorizer cannot list its own, or there are too many. */
  readonly extent: 'whole' | 'partial';
}

/**
 * The authorizer of Roles, ClusterRoles, and their bindings, which also lists rules (AUTHZ-4,
 * AUTHZ-8). A decision takes all changes into account that were reported before it; it is a promise
 * only if it must wait for one of them or visits very many rules. Lists of rules do not wait for
 * changes.
 */
export interface RbacAuthorizer extends Authorizer {
  /**
   * All rules that apply to the user in the namespace (empty: at the cluster scope); those of a
   * role appear once for any number of bindings.
   */
  rulesFor(user: UserInfo, namespace: string): RulesForUser;
  /** The rules of a role that a binding in `namespace` refers to, or the error. */
  rulesOfRole(
    roleRef: { readonly kind: string; readonly name: string },
    namespace: string,
  ): Omit<RulesForUser, 'extent'>;
}

/** Number of rules and grants that a decision visits without a pause, 1 to 4 ms of work. */
const visitedMax = 30_000;

/** Number of rules that a step of a longer decision visits. */
const stepRules = 1_000;

/**
 * Creates an authorizer for Roles, ClusterRoles, and their bindings (AUTHZ-4).
 * @param options.changes their index, and the changes that it does not contain yet
 */
export function createRbacAuthorizer(options: {
  readonly changes: RbacChanges;
  readonly dialect: Dialect;
  readonly clock: Pick<Clock, 'monotonic'>;
}): RbacAuthorizer {
  const { changes, dialect, clock } = options;
  const { index } = changes;
  const problemOf = ({ problem, binding }: Grant) => problem ?? unresolved(binding.role, dialect);
  const tools: DecisionTools = { changes, problemOf };
  const decideLater = async (attributes: Attributes): Promise<AuthorizationResult> => {
    await changes.settled();
    return runInSlices(decisionSteps(attributes, tools), clock);
  };

  return {
    name: 'RBAC',
    authorize: (attributes) => decisionAtOnce(attributes, tools) ?? decideLater(attributes),
    rulesFor(user, namespace) {
      const roles = new Set<RoleSlot>();
      const errors = new Set<string>();
      index.visit(user, namespace, (grant) => {
        const problem = problemOf(grant);
        if (problem !== undefined) errors.add(problem);
        else roles.add(grant.binding.role);
        return 'continue';
      });
      const rules = [...roles].flatMap((role) => role.rules ?? []);
      return { rules, errors: [...errors], extent: 'whole' };
    },
    rulesOfRole(roleRef, namespace) {
      const slot = index.role(roleRef, namespace) ?? { roleRef, rules: undefined };
      const problem = unresolved(slot, dialect);
      return { rules: slot.rules ?? [], errors: problem === undefined ? [] : [problem] };
    },
  };
}

interface DecisionTools {
  readonly changes: RbacChanges;
  /** The error of a grant that grants nothing. */
  readonly problemOf: (grant: Grant) => string | undefined;
}

/** The decision, without grants that a waiting change may affect; undefined if it takes longer. */
function decisionAtOnce(
  attributes: Attributes,
  { changes, problemOf }: DecisionTools,
): AuthorizationResult | undefined {
  const { isSettled } = changes;
  let isOpen = !isSettled && changes.mayGrantIn(attributes.namespace);
  let allowed: Grant | undefined;
  let errors: Set<string> | undefined;
  let visited = 0;
  changes.index.visit(attributes.user, attributes.namespace, (grant) => {
    if (!isSettled && changes.mayChange(grant)) {
      isOpen = true;
      return 'continue';
    }
    const problem = problemOf(grant);
    if (problem !== undefined) {
      errors ??= new Set();
      errors.add(problem);
      return 'continue';
    }
    const { compiled } = grant.binding.role;
    visited += 1 + compiled.length;
    if (visited > visitedMax) {
      isOpen = true;
      return 'stop';
    }
    for (const rule of compiled) {
      if (!ruleAllows(rule, attributes)) continue;
      allowed = grant;
      return 'stop';
    }
    return 'continue';
  });
  if (allowed !== undefined) return allowedBy(allowed);
  return isOpen ? undefined : noOpinion(errors);
}

/** A decision in steps, which visit each role once for any number of its grants (TRUST-2). */
function* decisionSteps(
  attributes: Attributes,
  { changes, problemOf }: DecisionTools,
): Generator<void, AuthorizationResult> {
  const grants = new Map<RoleSlot, Grant>();
  const errors = new Set<string>();
  changes.index.visit(attributes.user, attributes.namespace, (grant) => {
    const problem = problemOf(grant);
    const { role } = grant.binding;
    if (problem !== undefined) errors.add(problem);
    else if (!grants.has(role)) grants.set(role, grant);
    return 'continue';
  });
  // The rules of the present, so that changes between two steps do not mix states.
  const roles = Array.from(grants, ([{ compiled }, grant]) => ({ compiled, grant }));
  let visited = 0;
  for (const { compiled, grant } of roles) {
    for (const rule of compiled) {
      if (ruleAllows(rule, attributes)) return allowedBy(grant);
      visited += 1;
      if (visited % stepRules === 0) yield;
    }
  }
  return noOpinion(errors);
}

const allowedBy = (grant: Grant): AuthorizationResult => ({
  decision: 'allow',
  reason: `RBAC: allowed by ${describeGrant(grant)}`,
});

const noOpinion = (errors: ReadonlySet<string> | undefined): AuthorizationResult => {
  const isWithout = errors === undefined || errors.size === 0;
  return { decision: 'no-opinion', reason: isWithout ? '' : `RBAC: ${aggregateText([...errors])}` };
};

function unresolved(
  slot: Pick<RoleSlot, 'roleRef' | 'rules'>,
  dialect: Dialect,
): string | undefined {
  if (slot.rules !== undefined) return undefined;
  const { kind, name } = slot.roleRef;
  if (kind !== 'Role' && kind !== 'ClusterRole') {
    return `unsupported role reference kind: ${JSON.stringify(kind)}`;
  }
  const resource = `${kind.toLowerCase()}.${dialect.group('rbac.authorization')}`;
  return `${resource} ${JSON.stringify(name)} not found`;
}
