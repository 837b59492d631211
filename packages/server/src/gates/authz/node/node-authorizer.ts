import { type Dialect, nodeOfUser, type UserInfo } from '@wheelhouse/machinery';
import type { Attributes, AuthorizationResult, Authorizer } from '../contract.ts';
import { nodeRules, ruleWords } from '../rbac/default-rules.ts';
import { compileRule, ruleAllows } from '../rbac/rules.ts';
import type { NodeGraph, VertexKind } from './node-graph.ts';

export interface NodeAuthorizer extends Authorizer {
  /** Why the rules of the user cannot be listed; undefined if the user is not a node. */
  unlisted(user: UserInfo): string | undefined;
}

interface Asked {
  readonly node: string;
  readonly attributes: Attributes;
}

type Decide = (request: Asked) => AuthorizationResult;

const allow: AuthorizationResult = { decision: 'allow', reason: '' };
const silent: AuthorizationResult = { decision: 'no-opinion', reason: '' };
const no = (reason: string): AuthorizationResult => ({ decision: 'no-opinion', reason });

/**
 * Decides requests of nodes (AUTHZ-9): they may read what the pods bound to them need, and write
 * objects about themselves as far as the URL shows; NodeRestriction checks the rest. All other
 * requests follow the rules of the role `system:node`. Has no opinion on other users.
 */
export function createNodeAuthorizer(options: {
  readonly graph: NodeGraph;
  readonly dialect: Dialect;
  /** `any`: nodes may read all nodes and pods (gate AuthorizeNodeWithSelectors off). */
  readonly nodesAndPods: 'own' | 'any';
}): NodeAuthorizer {
  const { graph, dialect } = options;
  const rules = nodeRules(ruleWords(dialect)).map(compileRule);
  const decisions = decisionsOf(graph, options);
  return {
    name: 'Node',
    unlisted: (user) =>
      nodeOfUser(user) === undefined
        ? undefined
        : 'node authorizer does not support user rule resolution',
    authorize(attributes) {
      const { user, group, resource } = attributes;
      const node = nodeOfUser(user);
      if (node === undefined) return silent;
      if (node === '') return no(`unknown node for user ${JSON.stringify(user.name)}`);
      if (attributes.isResourceRequest) {
        const decide = decisions.get(group === '' ? resource : `${resource}.${group}`);
        if (decide !== undefined) return decide({ node, attributes });
      }
      return rules.some((rule) => ruleAllows(rule, attributes)) ? allow : silent;
    },
  };
}

/** Resources to which each node has its own access. */
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
    [`resourceslices.${resource}`, slices(related('resourceslice'), nodesAndPods)],
    ...(nodesAndPods === 'own'
      ? ([
          ['nodes', ownNode],
          ['pods', ownPods(related('pod'))],
        ] as const)
      : []),
  ]);
}

const unrelated = (node: string) =>
  no(`no relationship found between node '${node}' and this object`);

function relatedTo(graph: NodeGraph, kind: VertexKind): Decide {
  return ({ node, attributes }) => {
    const { namespace, name } = attributes;
    if (name === '') return no('No Object name found');
    return graph.leadsTo(node, { kind, namespace, name }) ? allow : unrelated(node);
  };
}

function namespacedReads(related: Decide): Decide {
  return (request) => {
    const { verb, subresource, namespace } = request.attributes;
    if (verb !== 'get' && verb !== 'list' && verb !== 'watch') {
      return no('can only read resources of this type');
    }
    if (subresource !== '') return no('cannot read subresource');
    if (namespace === '') return no('can only read namespaced object of this type');
    return related(request);
  };
}

function singleGet(related: Decide): Decide {
  return (request) => {
    const { verb, subresource } = request.attributes;
    if (verb !== 'get') return no('can only get individual resources of this type');
    if (subresource !== '') return no('cannot get subresource');
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
      : no('can only get/update/patch this type');
  };
}

function tokenCreation(related: Decide): Decide {
  return (request) => {
    const { verb, name, subresource } = request.attributes;
    if (verb !== 'create' || name === '') {
      return no('can only create tokens for individual service accounts');
    }
    if (subresource !== 'token') return no('can only create token subresource of serviceaccount');
    return related(request);
  };
}

const ownObjectVerbs = new Set(['get', 'create', 'update', 'patch', 'delete']);

/** Allows creates, because the URL has no name; NodeRestriction checks the object. */
function ownLease(namespace: string): Decide {
  return ({ node, attributes }) => {
    if (!ownObjectVerbs.has(attributes.verb)) {
      return no('can only get, create, update, patch, or delete a node lease');
    }
    if (attributes.namespace !== namespace) {
      return no(`can only access leases in the ${JSON.stringify(namespace)} system namespace`);
    }
    if (attributes.verb !== 'create' && attributes.name !== node) {
      return no('can only access node lease with the same name as the requesting node');
    }
    return allow;
  };
}

const ownCsiNode: Decide = ({ node, attributes }) => {
  if (!ownObjectVerbs.has(attributes.verb)) {
    return no('can only get, create, update, patch, or delete a CSINode');
  }
  if (attributes.subresource !== '') return no('cannot authorize CSINode subresources');
  if (attributes.verb !== 'create' && attributes.name !== node) {
    return no('can only access CSINode with the same name as the requesting node');
  }
  return allow;
};

function slices(related: Decide, nodesAndPods: 'own' | 'any'): Decide {
  return (request) => {
    const { verb, subresource } = request.attributes;
    if (subresource !== '') return no('cannot authorize ResourceSlice subresources');
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
        if (nodesAndPods === 'any' || selectsPodsOfNode(request)) return allow;
        return no(
          'can only list/watch/deletecollection resourceslices with nodeName field selector',
        );
      default:
        return no(
          'only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection',
        );
    }
  };
}

/** Whether the request's field selector selects only the requesting node. */
function selectsPodsOfNode({ node, attributes }: Asked): boolean {
  return (attributes.fieldSelector ?? []).some(
    (one) => one.label === 'spec.nodeName' && one.operator === '=' && one.value === node,
  );
}

const ownNode: Decide = ({ node, attributes }) => {
  const { verb, subresource, name } = attributes;
  if (subresource === 'status') return verb === 'update' || verb === 'patch' ? allow : silent;
  if (subresource !== '') return silent;
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
        ? no(`node '${node}' cannot read all nodes, only its own Node object`)
        : no(`node '${node}' cannot read '${name}', only its own Node object`);
    default:
      return silent;
  }
};

function ownPods(related: Decide): Decide {
  const get = singleGet(related);
  return (request) => {
    const { verb, subresource, name } = request.attributes;
    if (subresource === 'status') return verb === 'update' || verb === 'patch' ? allow : silent;
    if (subresource === 'eviction') return verb === 'create' ? allow : silent;
    if (subresource !== '') return silent;
    switch (verb) {
      case 'get':
        return get(request);
      case 'list':
      case 'watch':
        if (selectsPodsOfNode(request)) return allow;
        if (name !== '') return related(request);
        return no('can only list/watch pods with spec.nodeName field selector');
      case 'create':
      case 'delete':
        return allow;
      default:
        return silent;
    }
  };
}
