import type { PolicyRule } from '@wheelhouse/kinds';
import { type ApiObject, aggregateText, type Dialect, type UserInfo } from '@wheelhouse/machinery';
import type { AuthorizationResult } from '../../../registry/permit.ts';
import type { Authorizer } from '../authorization.ts';
import {
  type RbacChange,
  RbacIndex,
  type RbacKind,
  type RoleSlot,
  ruleAllows,
} from './rbac-index.ts';

/** The source of roles and bindings: in the server, the watch caches. */
export interface RbacSource {
  /** All current objects of a kind. */
  list(kind: RbacKind): Iterable<ApiObject>;
  /** Calls `listener` for every later change, in order; the result unsubscribes it. */
  onChange(listener: (change: RbacChange) => void): () => void;
}

/** The rules that apply to a user, and errors that may hide further rules. */
export interface RulesForUser {
  readonly rules: readonly PolicyRule[];
  readonly errors: readonly string[];
  /** `partial`: rules are omitted; an authorizer cannot list its own, or there are too many. */
  readonly extent: 'whole' | 'partial';
}

/**
 * The authorizer of Roles, ClusterRoles, and their bindings, which also lists rules (AUTHZ-4,
 * AUTHZ-8).
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
  /** Ends the subscription. */
  stop(): void;
}

const kinds: readonly RbacKind[] = ['ClusterRole', 'Role', 'ClusterRoleBinding', 'RoleBinding'];

/** Creates an authorizer for Roles, ClusterRoles, and their bindings (AUTHZ-4). */
export function createRbacAuthorizer(options: {
  readonly source: RbacSource;
  readonly dialect: Dialect;
}): RbacAuthorizer {
  const { source, dialect } = options;
  const index = new RbacIndex();
  const stop = source.onChange((change) => index.apply(change));
  for (const kind of kinds) for (const current of source.list(kind)) index.apply({ kind, current });

  return {
    name: 'RBAC',
    stop,
    authorize(attributes): AuthorizationResult {
      let allowed: AuthorizationResult | undefined;
      let errors: Set<string> | undefined;
      index.visit(attributes.user, attributes.namespace, (grant) => {
        const problem = grant.problem ?? unresolved(grant.role, dialect);
        if (problem !== undefined) {
          errors ??= new Set();
          errors.add(problem);
          return 'continue';
        }
        for (const rule of grant.role.compiled) {
          if (!ruleAllows(rule, attributes)) continue;
          allowed = { decision: 'allow', reason: `RBAC: allowed by ${grant.describe()}` };
          return 'stop';
        }
        return 'continue';
      });
      if (allowed !== undefined) return allowed;
      const reason = errors === undefined ? '' : `RBAC: ${aggregateText([...errors])}`;
      return { decision: 'no-opinion', reason };
    },
    rulesFor(user, namespace) {
      const roles = new Set<RoleSlot>();
      const errors = new Set<string>();
      index.visit(user, namespace, (grant) => {
        const problem = grant.problem ?? unresolved(grant.role, dialect);
        if (problem !== undefined) errors.add(problem);
        else roles.add(grant.role);
        return 'continue';
      });
      const rules = [...roles].flatMap((role) => role.rules ?? []);
      return { rules, errors: [...errors], extent: 'whole' };
    },
    rulesOfRole(roleRef, namespace) {
      const slot = index.role(roleRef, namespace) ?? { roleRef, rules: undefined, compiled: [] };
      const problem = unresolved(slot, dialect);
      return { rules: slot.rules ?? [], errors: problem === undefined ? [] : [problem] };
    },
  };
}

function unresolved(slot: RoleSlot, dialect: Dialect): string | undefined {
  if (slot.rules !== undefined) return undefined;
  const { kind, name } = slot.roleRef;
  if (kind !== 'Role' && kind !== 'ClusterRole') {
    return `unsupported role reference kind: ${JSON.stringify(kind)}`;
  }
  const resource = `${kind.toLowerCase()}.${dialect.group('rbac.authorization')}`;
  return `${resource} ${JSON.stringify(name)} not found`;
}
