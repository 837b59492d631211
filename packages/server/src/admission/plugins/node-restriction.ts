import {
  at,
  certificateRequestProblem,
  claimNames,
  listAt,
  namesConfigMaps,
  namesSecrets,
  objectAt,
  objectsAt,
  requestedNames,
  type Stored,
  textAt,
} from '@wheelhouse/kinds';
import type { Node, Pod, Volume } from '@wheelhouse/kinds/types/core/v1';
import {
  type ApiObject,
  aggregateText,
  type Dialect,
  type JsonObject,
  jsonEqual,
  jsonObject,
  nodeOfUser,
  notFound,
  qualifiedResource,
} from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import type { AdmissionPlugin } from '../chain.ts';
import { type AdmissionTools, refusal } from '../tools.ts';

interface Restricted {
  readonly call: AdmissionCall;
  readonly node: string;
  /** Refuses the call; `why` has kube-apiserver's wording. */
  readonly refuse: (why: string) => never;
}

type Restrict = (restricted: Restricted) => Promise<void> | void;

/**
 * Restricts nodes to their own objects (AUTHZ-9) by checks that need the object, not only the URL
 * as the Node authorizer. Other users pass.
 */
export function nodeRestriction(tools: AdmissionTools): AdmissionPlugin {
  const { dialect } = tools;
  const name = (resource: string, stem: string) => `${resource}.${dialect.group(stem)}`;
  const restrictions = new Map<string, Restrict>([
    ['pods', podRestriction(tools)],
    ['nodes', nodeObject(tools)],
    ['persistentvolumeclaims', claim],
    ['serviceaccounts', tokenRequest(tools)],
    [name('leases', 'coordination'), lease(dialect.systemNamespace('node-lease'))],
    [name('csinodes', 'storage'), csiNode],
    [name('resourceslices', 'resource'), slice],
    [name('certificatesigningrequests', 'certificates'), certificateRequest(tools)],
  ]);
  return {
    name: 'NodeRestriction',
    mutate(call) {
      const node = nodeOfUser(call.context.user);
      if (node === undefined) return undefined;
      const refuse = (why: string): never => {
        throw refusal(call, why);
      };
      if (node === '')
        refuse(`could not determine node from user ${quote(call.context.user.name)}`);
      return (
        restrictions.get(qualifiedResource(call.target.def))?.({ call, node, refuse }) ?? undefined
      );
    },
  };
}

const quote = (text: string) => JSON.stringify(text);

/** 404 for an object that a check needs; kube-apiserver names its resource in the singular. */
const missing = (resource: string, name: string) => notFound({ group: '', resource }, name);

function podRestriction(tools: AdmissionTools): Restrict {
  const onCreate = mirrorPod(tools);
  return async (restricted) => {
    const { call, node, refuse } = restricted;
    switch (call.target.subresource) {
      case '':
        if (call.operation === 'CREATE') return onCreate(restricted);
        if (call.operation === 'UPDATE') {
          const allowed = `node ${quote(node)} can only create and delete mirror pods`;
          return refuse(`unexpected operation "UPDATE", ${allowed}`);
        }
        if (textAt(call.old, 'spec', 'nodeName') === node) return;
        return refuse(`node ${quote(node)} can only delete pods with spec.nodeName set to itself`);
      case 'status':
        return podStatus(restricted);
      case 'eviction': {
        const { namespace, name } = call.target;
        const pod = await tools.objects.get('pods', { namespace, name });
        if (pod === undefined) throw missing('pod', name);
        if (textAt(pod, 'spec', 'nodeName') === node) return;
        return refuse(`node ${node} can only evict pods with spec.nodeName set to itself`);
      }
      default:
        return refuse(
          `unexpected pod subresource ${quote(call.target.subresource)}, only 'status' and 'eviction' are allowed`,
        );
    }
  };
}

/** A node creates mirror pods only for itself, and they must not reference other objects. */
function mirrorPod(tools: AdmissionTools): Restrict {
  const annotation = tools.dialect.label('config.mirror');
  return async (restricted) => {
    const { call, node, refuse } = restricted;
    const pod = call.object;
    if (pod === undefined) return;
    const only = `node ${quote(node)} can only create`;
    if (!Object.hasOwn(pod.metadata.annotations ?? {}, annotation)) {
      refuse(`pod does not have ${quote(annotation)} annotation, ${only} mirror pods`);
    }
    if (textAt(pod, 'spec', 'nodeName') !== node) {
      refuse(`${only} pods with spec.nodeName set to itself`);
    }
    await checkOwner(tools, { ...restricted, pod });
    const reference = referenced(pod);
    if (reference !== undefined) {
      refuse(`node ${quote(node)} can not create pods that reference ${reference}`);
    }
  };
}

async function checkOwner(
  tools: AdmissionTools,
  { node, refuse, pod }: Restricted & { readonly pod: ApiObject },
): Promise<void> {
  const only = `node ${quote(node)} can only create pods with`;
  const owners = pod.metadata.ownerReferences ?? [];
  const [owner] = owners;
  if (owners.length > 1) refuse(`${only} a single owner reference set to itself`);
  const isSelf = owner?.apiVersion === 'v1' && owner.kind === 'Node' && owner.name === node;
  if (owner === undefined || !isSelf) return refuse(`${only} an owner reference set to itself`);
  if (owner.controller !== true) refuse(`${only} a controller owner reference set to itself`);
  if (owner.blockOwnerDeletion === true) {
    refuse(`node ${quote(node)} must not set blockOwnerDeletion on an owner reference`);
  }
  const stored = await tools.objects.get('nodes', { namespace: '', name: node });
  if (stored === undefined) throw missing('node', node);
  const uid = stored.metadata.uid ?? '';
  if (owner.uid !== uid) refuse(`node ${node} UID mismatch: expected ${owner.uid} got ${uid}`);
}

/** The type of API objects that a pod refers to; undefined if there is none. */
function referenced(pod: Stored<Pod>): string | undefined {
  const spec = pod.spec;
  const volumes = spec?.volumes ?? [];
  const projects = (source: string) =>
    volumes.some((volume) =>
      (volume.projected?.sources ?? []).some(
        (projection) => objectAt(projection, source) !== undefined,
      ),
    );
  if ((spec?.serviceAccountName ?? '') !== '') return 'a service account';
  if (namesSecrets(spec)) return 'secrets';
  if (namesConfigMaps(spec)) return 'configmaps';
  if (projects('serviceAccountToken')) return 'serviceaccounts (via projected volumes)';
  if (projects('clusterTrustBundle')) return 'clustertrustbundles';
  if (volumes.some((volume) => volume.persistentVolumeClaim !== undefined)) {
    return 'persistentvolumeclaims';
  }
  return (spec?.resourceClaims ?? []).length > 0 ? 'resourceclaims' : undefined;
}

const podStatus: Restrict = ({ call, node, refuse }) => {
  if (call.operation !== 'UPDATE') refuse(`unexpected operation ${quote(call.operation)}`);
  const { object, old } = call;
  if (textAt(old, 'spec', 'nodeName') !== node) {
    refuse(
      `node ${quote(node)} can only update pod status for pods with spec.nodeName set to itself`,
    );
  }
  if (!jsonEqual(object?.metadata.labels ?? {}, old?.metadata.labels ?? {})) {
    refuse(`node ${quote(node)} cannot update labels through pod status`);
  }
  const claims = (pod: Stored<Pod> | undefined) => [...(pod?.status?.resourceClaimStatuses ?? [])];
  if (!jsonEqual(claims(object), claims(old))) {
    refuse(`node ${quote(node)} cannot update resource claim statues`);
  }
};

const claim: Restrict = ({ call, node, refuse }) => {
  if (call.target.subresource !== 'status') refuse('may only update PVC status');
  if (call.operation !== 'UPDATE') refuse(`unexpected operation ${quote(call.operation)}`);
  const [before, after] = [withoutReported(call.old), withoutReported(call.object)];
  if (jsonEqual(before, after)) return;
  const changed = changedMembers(before, after).join(', ');
  refuse(
    `node ${quote(node)} is not allowed to update fields other than status.quantity and status.conditions: ${changed}`,
  );
};

/** Fields of a volume claim that a node reports after a resize. */
const reported = ['capacity', 'conditions', 'allocatedResourceStatuses', 'allocatedResources'];

function withoutReported(object: ApiObject | undefined): JsonObject {
  const copy = jsonObject(structuredClone(object ?? {}));
  const [status, metadata] = [objectAt(copy, 'status') ?? {}, objectAt(copy, 'metadata') ?? {}];
  for (const member of reported) delete status[member];
  for (const member of ['resourceVersion', 'managedFields']) delete metadata[member];
  return copy;
}

function changedMembers(before: JsonObject, after: JsonObject): string[] {
  return ['metadata', 'spec', 'status'].flatMap((part) => {
    const [oldPart, newPart] = [objectAt(before, part) ?? {}, objectAt(after, part) ?? {}];
    const names = new Set([...Object.keys(oldPart), ...Object.keys(newPart)]);
    return [...names]
      .filter((name) => !jsonEqual(oldPart[name], newPart[name]))
      .sort()
      .map((name) => `${part}.${name}`);
  });
}

function nodeObject(tools: AdmissionTools): Restrict {
  const labels = forbiddenNodeLabels(tools.dialect);
  return ({ call, node, refuse }) => {
    const { object, old, operation } = call;
    if (call.name !== node) {
      refuse(`node ${quote(node)} is not allowed to modify node ${quote(call.name)}`);
    }
    const config = at(object, 'spec', 'configSource');
    if (operation === 'CREATE') {
      if (config !== undefined && config !== null) {
        refuse(`node ${quote(node)} is not allowed to create pods with a non-nil configSource`);
      }
      const restricted = labels(object?.metadata.labels ?? {}, {});
      if (restricted.length === 0) return;
      refuse(
        `node ${quote(node)} is not allowed to set the following labels: ${restricted.join(', ')}`,
      );
    }
    if (operation !== 'UPDATE') return;
    const mayNot = `node ${quote(node)} is not allowed to`;
    if (config !== undefined && !jsonEqual(config, at(old, 'spec', 'configSource'))) {
      refuse(`${mayNot} update configSource to a new non-nil configSource`);
    }
    const taints = (state: Stored<Node> | undefined) => [...(state?.spec?.taints ?? [])];
    if (!jsonEqual(taints(object), taints(old))) refuse(`${mayNot} modify taints`);
    const owners = (state: ApiObject | undefined) => state?.metadata.ownerReferences ?? [];
    if (!jsonEqual(owners(object), owners(old))) refuse(`${mayNot} modify ownerReferences`);
    const found = labels(object?.metadata.labels ?? {}, old?.metadata.labels ?? {});
    if (found.length > 0) refuse(`is not allowed to modify labels: ${found.join(', ')}`);
  };
}

/** A node requests tokens only for its own pods. */
function tokenRequest(tools: AdmissionTools): Restrict {
  return async ({ call, node, refuse }) => {
    if (call.operation !== 'CREATE' || call.target.subresource !== 'token') return;
    const reference = objectAt(call.object, 'spec', 'boundObjectRef');
    const name = textAt(reference, 'name');
    const isPod = textAt(reference, 'apiVersion') === 'v1' && textAt(reference, 'kind') === 'Pod';
    if (!isPod || name === '') refuse('node requested token not bound to a pod');
    const uid = textAt(reference, 'uid');
    if (uid === '') refuse('node requested token with a pod binding without a uid');
    const { namespace } = call.target;
    const pod = await tools.objects.get('pods', { namespace, name });
    if (pod === undefined) throw missing('pod', name);
    if (pod.metadata.uid !== uid) {
      refuse(
        `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`,
      );
    }
    if (textAt(pod, 'spec', 'nodeName') !== node) {
      refuse('node requested token bound to a pod scheduled on a different node');
    }
    if (tools.isOn('ServiceAccountNodeAudienceRestriction')) {
      await checkAudience(tools, { call, node, refuse }, pod);
    }
  };
}

/**
 * The audience of a token must be one that the pod mounts tokens for, or that a driver of its
 * volumes requires.
 */
async function checkAudience(
  tools: AdmissionTools,
  { call, refuse }: Restricted,
  pod: Stored<Pod>,
): Promise<void> {
  const [audience = '', ...more] = listAt(call.object, 'spec', 'audiences').map(String);
  if (more.length > 0) refuse('node may only request 0 or 1 audiences');
  const problems: string[] = [];
  for (const volume of pod.spec?.volumes ?? []) {
    const isMounted = (volume.projected?.sources ?? []).some((source) => {
      const token = source.serviceAccountToken;
      return token !== undefined && (token.audience ?? '') === audience;
    });
    if (isMounted) return;
    const driver = await driverOf(tools, pod, volume);
    if (driver === undefined) continue;
    if ('problem' in driver) problems.push(driver.problem);
    else if (driver.audiences.includes(audience)) return;
  }
  const name = quote(audience);
  if (problems.length === 0) refuse(`audience ${name} not found in pod spec volume`);
  refuse(`error validating audience ${name}: ${aggregateText(problems)}`);
}

type Driver = { readonly problem: string } | { readonly audiences: readonly string[] };

/** The token requests of a volume's driver; undefined for a volume without one. */
async function driverOf(
  tools: AdmissionTools,
  pod: Stored<Pod>,
  volume: Stored<Volume>,
): Promise<Driver | undefined> {
  const { dialect, objects } = tools;
  const problem = (resource: string, name: string) => ({
    problem: `${resource} ${quote(name)} not found`,
  });
  const [claimName = ''] = claimNames({ ...pod, spec: { volumes: [volume] } });
  let driver = volume.csi?.driver ?? '';
  if (claimName !== '') {
    const namespace = pod.metadata.namespace ?? '';
    const claim = await objects.get('persistentvolumeclaims', { namespace, name: claimName });
    if (claim === undefined) return problem('persistentvolumeclaim', claimName);
    const name = textAt(claim, 'spec', 'volumeName');
    const found = await objects.get('persistentvolumes', { namespace: '', name });
    if (found === undefined) return problem('persistentvolume', name);
    driver = textAt(found, 'spec', 'csi', 'driver');
  }
  if (driver === '') return undefined;
  const driverObject = await objects.get('csidrivers.storage', { namespace: '', name: driver });
  if (driverObject === undefined) return problem(`csidriver.${dialect.group('storage')}`, driver);
  const requests = objectsAt(driverObject, 'spec', 'tokenRequests');
  return { audiences: requests.map((request) => textAt(request, 'audience')) };
}

/** A node requests certificates only for its own name. */
function certificateRequest(tools: AdmissionTools): Restrict {
  const { dialect } = tools;
  const signers = ['kubelet-serving', 'kube-apiserver-client-kubelet'].map((name) =>
    dialect.label(name),
  );
  return ({ call, node, refuse }) => {
    if (tools.isOn('AllowInsecureKubeletCertificateSigningRequests')) return;
    if (call.operation !== 'CREATE' || call.target.subresource !== '') return;
    if (!signers.includes(textAt(call.object, 'spec', 'signerName'))) return;
    const request = Buffer.from(textAt(call.object, 'spec', 'request'), 'base64');
    const names = requestedNames(request);
    if (names === undefined) {
      refuse(`unable to parse csr: ${certificateRequestProblem(request) ?? 'malformed'}`);
    }
    if (names?.commonName === `system:node:${node}`) return;
    refuse(`can only create a node CSR with CN=system:node:${node}`);
  };
}

function lease(namespace: string): Restrict {
  return ({ call, node, refuse }) => {
    if (call.target.namespace !== namespace) {
      refuse(`can only access leases in the ${quote(namespace)} system namespace`);
    }
    if (call.name !== node) {
      refuse('can only access node lease with the same name as the requesting node');
    }
  };
}

const csiNode: Restrict = ({ call, node, refuse }) => {
  if (call.name === node) return;
  refuse('can only access CSINode with the same name as the requesting node');
};

const slice: Restrict = ({ call, node, refuse }) => {
  const { operation, object, old } = call;
  if (operation === 'UPDATE') return;
  if (textAt(operation === 'CREATE' ? object : old, 'spec', 'nodeName') === node) return;
  const verb = operation.toLowerCase();
  refuse(`can only ${verb} ResourceSlice with the same NodeName as the requesting node`);
};

type Labels = Readonly<Record<string, string>>;

/**
 * Finds the labels that a node may not set on itself or remove (AUTHZ-9): those reserved for node
 * isolation, and the project's own except those that describe the node. Returns the names of such
 * labels that differ between two sets, sorted.
 */
export function forbiddenNodeLabels(
  dialect: Dialect,
): (labels: Labels, before: Labels) => string[] {
  const own = (domain: string) => [dialect.labelDomain, dialect.groupSuffix].some(within(domain));
  const setAside = dialect.label('', 'node-restriction').slice(0, -1);
  const described = describingLabels(dialect);
  const isForbidden = (key: string) => {
    const domain = domainOf(key);
    if (within(domain)(setAside)) return true;
    return own(domain) && !described.keys.has(key) && !described.domains.some(within(domain));
  };
  return (labels, before) => {
    const keys = new Set([...Object.keys(labels), ...Object.keys(before)]);
    const differs = (key: string) =>
      !Object.hasOwn(labels, key) || !Object.hasOwn(before, key) || labels[key] !== before[key];
    return [...keys].filter((key) => differs(key) && isForbidden(key)).sort();
  };
}

/** Labels by which a node describes itself: its name, system, location, and size. */
function describingLabels({ label }: Dialect) {
  return {
    keys: new Set([
      label('hostname'),
      label('zone', 'topology'),
      label('region', 'topology'),
      label('zone', 'failure-domain.beta'),
      label('region', 'failure-domain.beta'),
      label('instance-type', 'node'),
      label('instance-type', 'beta'),
      label('os'),
      label('arch'),
      label('os', 'beta'),
      label('arch', 'beta'),
      label('windows-build', 'node'),
    ]),
    domains: [label('', 'kubelet').slice(0, -1), label('', 'node').slice(0, -1)],
  };
}

const within = (domain: string) => (parent: string) =>
  domain === parent || domain.endsWith(`.${parent}`);

function domainOf(key: string): string {
  const slash = key.indexOf('/');
  return slash < 0 ? '' : key.slice(0, slash);
}
