import type { Features } from '@wheelhouse/kinds';
import { type Dialect, nodeOfUser, qualifiedResource, type UserInfo } from '@wheelhouse/machinery';
import type { Attributes, AuthorizationResult } from '../../../registry/permit.ts';
import type { Authorizer } from '../authorization.ts';
import { enabledNodeRules } from '../rbac/default-roles.ts';
import { ruleBuilder } from '../rbac/default-rules.ts';
import { compileRule, ruleAllows } from '../rbac/rbac-index.ts';
import type { NodeGraph, VertexKind } from './node-graph.ts';

interface NodeAuthorizer extends Authorizer {
  /** Why the rules of a node cannot be listed; undefined if the user is not a node. */
  rulesProblem(user: UserInfo): string | undefined;
}

interface NodeRequest {
  readonly node: string;
  readonly attributes: Attributes;
}

type Decide = (request: NodeRequest) => AuthorizationResult;

const allow: AuthorizationResult = { decision: 'allow', reason: '' };
const noOpinion: AuthorizationResult = { decision: 'no-opinion', reason: '' };
const noOpinionBecause = (reason: string): AuthorizationResult => ({
  decision: 'no-opinion',
  reason,
});

/**
 * Creates an authorizer of requests by nodes (AUTHZ-9). A node may read the objects that its pods
 * need, and write its own objects as far as the URL identifies them; NodeRestriction checks the
 * body. All other requests follow the rules of the role `system:node`. The authorizer has no
 * opinion on other users.
 */
export function createNodeAuthorizer(options: {
  readonly graph: NodeGraph;
  readonly dialect: Dialect;
  /** Some features add rules for nodes. */
  readonly features: Features;
  /** `any`: nodes may read all nodes and pods (gate AuthorizeNodeWithSelectors off). */
  readonly nodesAndPods: 'own' | 'any';
}): NodeAuthorizer {
  const { graph, dialect, features } = options;
  const rules = enabledNodeRules(ruleBuilder(dialect, features)).map(compileRule);
  const decisions = decisionsOf(graph, options);
  return {
    name: 'Node',
    rulesProblem: (user) =>
      nodeOfUser(user) === undefined
        ? undefined
        : 'node authorizer does not support user rule resolution',
    authorize(attributes) {
      const { user, group, resource } = attributes;
      const node = nodeOfUser(user);
      if (node === undefined) return noOpinion;
      if (node === '')
        return noOpinionBecause(`unknown node for user ${JSON.stringify(user.name)}`);
      if (attributes.isResourceRequest) {
        const decide = decisions.get(qualifiedResource({ group, resource }));
        if (decide !== undefined) return decide({ node, attributes });
      }
      return rules.some((rule) => ruleAllows(rule, attributes)) ? allow : noOpinion;
    },
  };
}

/** The decisions for resources whose access differs between nodes. */
function decisionsOf(
  graph: NodeGraph,
  options: { readonly dialect: Dialect; readonly nodesAndPods: 'own' | 'any' },
): ReadonlyMap<string, Decide> {
  const { dialect, nodesAndPods } = options;
  const related = (kind: VertexKind) => relatedTo(graph, kind);
  const [storage, resource] = [dialect.group('storage'), dialect.group('resource')];
  const leases = dialect.systemNamespace('node-lease');
  return new Map<string, Decide>([
    ['secrets', namespacedReads(related('secret'))],
    ['configmaps', namespacedReads(related('configmap'))],
    ['persistentvolumeclaims', claimDecision(related('persistentvolumeclaim'))],
    ['persistentvolumes', singleGet(related('persistentvolume'))],
    [`resourceclaims.${resource}`, singleGet(related('resourceclaim'))],
    [`volumeattachments.${storage}`, singleGet(related('volumeattachment'))],
    ['serviceaccounts', tokenCreation(related('serviceaccount'))],
    [`leases.${dialect.group('coordination')}`, ownLease(leases)],
    [`csinodes.${storage}`, ownCsiNode],
    [`resourceslices.${resource}`, resourceSlices(related('resourceslice'), nodesAndPods)],
    ...(nodesAndPods === 'own'
      ? ([
          ['nodes', ownNode],
          ['pods', ownPods(related('pod'))],
        ] as const)
      : []),
  ]);
}

const unrelated = (node: string) =>
  noOpinionBecause(`no relationship found between node '${node}' and this object`);

function relatedTo(graph: NodeGraph, kind: VertexKind): Decide {
  return ({ node, attributes }) => {
    const { namespace, name } = attributes;
    if (name === '') return noOpinionBecause('No Object name found');
    return graph.leadsTo(node, { kind, namespace, name }) ? allow : unrelated(node);
  };
}

function namespacedReads(related: Decide): Decide {
  return (request) => {
    const { verb, subresource, namespace } = request.attributes;
    if (verb !== 'get' && verb !== 'list' && verb !== 'watch') {
      return noOpinionBecause('can only read resources of this type');
    }
    if (subresource !== '') return noOpinionBecause('cannot read subresource');
    if (namespace === '') return noOpinionBecause('can only read namespaced object of this type');
    return related(request);
  };
}

function singleGet(related: Decide): Decide {
  return (request) => {
    const { verb, subresource } = request.attributes;
    if (verb !== 'get') return noOpinionBecause('can only get individual resources of this type');
    if (subresource !== '') return noOpinionBecause('cannot get subresource');
    return related(request);
  };
}

function claimDecision(related: Decide): Decide {
  const get = singleGet(related);
  return (request) => {
    const { verb, subresource } = request.attributes;
    if (subresource !== 'status') return get(request);
    return verb === 'update' || verb === 'patch'
      ? related(request)
      : noOpinionBecause('can only get/update/patch this type');
  };
}

function tokenCreation(related: Decide): Decide {
  return (request) => {
    const { verb, name, subresource } = request.attributes;
    if (verb !== 'create' || name === '') {
      return noOpinionBecause('can only create tokens for individual service accounts');
    }
    if (subresource !== 'token')
      return noOpinionBecause('can only create token subresource of serviceaccount');
    return related(request);
  };
}

const ownObjectVerbs = new Set(['get', 'create', 'update', 'patch', 'delete']);

/** Allows creates, because the URL has no name; NodeRestriction checks the object. */
function ownLease(namespace: string): Decide {
  return ({ node, attributes }) => {
    if (!ownObjectVerbs.has(attributes.verb)) {
      return noOpinionBecause('can only get, create, update, patch, or delete a node lease');
    }
    if (attributes.namespace !== namespace) {
      return noOpinionBecause(
        `can only access leases in the ${JSON.stringify(namespace)} system namespace`,
      );
    }
    if (attributes.verb !== 'create' && attributes.name !== node) {
      return noOpinionBecause(
        'can only access node lease with the same name as the requesting node',
      );
    }
    return allow;
  };
}

const ownCsiNode: Decide = ({ node, attributes }) => {
  if (!ownObjectVerbs.has(attributes.verb)) {
    return noOpinionBecause('can only get, create, update, patch, or delete a CSINode');
  }
  if (attributes.subresource !== '')
    return noOpinionBecause('cannot authorize CSINode subresources');
  if (attributes.verb !== 'create' && attributes.name !== node) {
    return noOpinionBecause('can only access CSINode with the same name as the requesting node');
  }
  return allow;
};

function resourceSlices(related: Decide, nodesAndPods: 'own' | 'any'): Decide {
  return (request) => {
    const { verb, subresource } = request.attributes;
    if (subresource !== '') return noOpinionBecause('cannot authorize ResourceSlice subresources');
    switch (verb) {
      case 'create':
        return allow;
      case 'get':
      case 'update':
      case 'patch':
      case 'delete':
        return related(request);
      case 'watch':
      case 'list':
      case 'deletecollection':
        if (nodesAndPods === 'any' || selectsOwnNode(request)) return allow;
        return noOpinionBecause(
          'can only list/watch/deletecollection resourceslices with nodeName field selector',
        );
      default:
        return noOpinionBecause(
          'only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection',
        );
    }
  };
}

/** Whether the request's field selector selects only the requesting node. */
function selectsOwnNode({ node, attributes }: NodeRequest): boolean {
  return (attributes.fieldSelector ?? []).some(
    ({ label, operator, value }) => label === 'spec.nodeName' && operator === '=' && value === node,
  );
}

const ownNode: Decide = ({ node, attributes }) => {
  const { verb, subresource, name } = attributes;
  if (subresource === 'status') return verb === 'update' || verb === 'patch' ? allow : noOpinion;
  if (subresource !== '') return noOpinion;
  switch (verb) {
    case 'create':
    case 'update':
    case 'patch':
      return allow;
    case 'get':
    case 'list':
    case 'watch':
      if (name === node) return allow;
      return name === ''
        ? noOpinionBecause(`node '${node}' cannot read all nodes, only its own Node object`)
        : noOpinionBecause(`node '${node}' cannot read '${name}', only its own Node object`);
    default:
      return noOpinion;
  }
};

function ownPods(related: Decide): Decide {
  const get = singleGet(related);
  return (request) => {
    const { verb, subresource, name } = request.attributes;
    if (subresource === 'status') return verb === 'update' || verb === 'patch' ? allow : noOpinion;
    if (subresource === 'eviction') return verb === 'create' ? allow : noOpinion;
    if (subresource !== '') return noOpinion;
    switch (verb) {
      case 'get':
        return get(request);
      case 'list':
      case 'watch':
        if (selectsOwnNode(request)) return allow;
        if (name !== '') return related(request);
        return noOpinionBecause('can only list/watch pods with spec.nodeName field selector');
      case 'create':
      case 'delete':
        return allow;
      default:
        return noOpinion;
    }
  };
}
