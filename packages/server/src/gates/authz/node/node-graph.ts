import {
  at,
  claimNames,
  configMapNames,
  objectAt,
  resourceClaimNames,
  secretNames,
  textAt,
} from '@wheelhouse/kinds';
import { type ApiObject, isObject, type JsonObject } from '@wheelhouse/machinery';

/** What an edge of the graph may begin at. */
export type VertexKind =
  | 'configmap'
  | 'persistentvolume'
  | 'persistentvolumeclaim'
  | 'pod'
  | 'resourceclaim'
  | 'resourceslice'
  | 'secret'
  | 'serviceaccount'
  | 'volumeattachment';

export interface Vertex {
  readonly kind: VertexKind;
  /** Empty for cluster-scoped kinds. */
  readonly namespace: string;
  readonly name: string;
}

interface Volume {
  /** Vertex key of the claim it is bound to. */
  readonly claim: string;
  /** Vertex keys of the Secrets that a node mounts it with. */
  readonly secrets: readonly string[];
}

interface Holder {
  readonly node: string;
  readonly vertices: readonly string[];
}

/**
 * Which objects each node needs (AUTHZ-9): a pod bound to it and what the pod refers to, volumes
 * bound to the pod's claims and their Secrets, attachments and slices that name the node.
 *
 * A pod's references are counted per node as it comes and goes, so a question is a look-up:
 *
 *     pod web on n1 mounts secret s     nodes of `secret default/s`: { n1: 1 }
 *     pod db on n1 mounts it too                                     { n1: 2 }
 *     both are gone                     no entry
 *
 * Volumes are the one step between: their claim is looked up when asked.
 */
export class NodeGraph {
  /** Node names by vertex key, with the number of holders that lead there. */
  readonly #nodes = new Map<string, Map<string, number>>();
  /** What each pod, attachment or slice brought in, by vertex key. */
  readonly #holders = new Map<string, Holder>();
  readonly #volumes = new Map<string, Volume>();
  /** Names of the volumes that use a Secret, by its vertex key. */
  readonly #volumesOfSecret = new Map<string, Set<string>>();
  readonly #mirrorAnnotation: string;

  constructor(options: { readonly mirrorAnnotation: string }) {
    this.#mirrorAnnotation = options.mirrorAnnotation;
  }

  /** Whether the node needs the object. */
  leadsTo(node: string, { kind, namespace, name }: Vertex): boolean {
    if (kind === 'persistentvolume') return this.#mounts(node, name);
    const key = vertexKey(kind, namespace, name);
    if (this.#nodes.get(key)?.has(node) === true) return true;
    if (kind !== 'secret') return false;
    for (const volume of this.#volumesOfSecret.get(key) ?? []) {
      if (this.#mounts(node, volume)) return true;
    }
    return false;
  }

  /** Takes in a pod as it is now. */
  setPod(pod: ApiObject): void {
    const { namespace = '', name = '' } = pod.metadata;
    const key = vertexKey('pod', namespace, name);
    const node = textAt(pod, 'spec', 'nodeName');
    if (node === '') this.#release(key);
    else this.#hold(key, { node, vertices: [key, ...this.#references(pod)] });
  }

  removePod(namespace: string, name: string): void {
    this.#release(vertexKey('pod', namespace, name));
  }

  /** Takes in a volume as it is now; one that is bound to no claim leads nowhere. */
  setVolume(volume: ApiObject): void {
    const { name = '' } = volume.metadata;
    this.removeVolume(name);
    const claim = objectAt(volume, 'spec', 'claimRef');
    if (claim === undefined) return;
    const [namespace, claimName] = [textAt(claim, 'namespace'), textAt(claim, 'name')];
    const secrets = secretsOfVolume(objectAt(volume, 'spec') ?? {}, namespace);
    this.#volumes.set(name, {
      claim: vertexKey('persistentvolumeclaim', namespace, claimName),
      secrets,
    });
    for (const secret of secrets) {
      const users = this.#volumesOfSecret.get(secret) ?? new Set();
      this.#volumesOfSecret.set(secret, users.add(name));
    }
  }

  removeVolume(name: string): void {
    for (const secret of this.#volumes.get(name)?.secrets ?? []) {
      const users = this.#volumesOfSecret.get(secret);
      users?.delete(name);
      if (users?.size === 0) this.#volumesOfSecret.delete(secret);
    }
    this.#volumes.delete(name);
  }

  /** Takes in an object that belongs to one node; an empty node takes it out. */
  setNodeOf(kind: 'volumeattachment' | 'resourceslice', name: string, node: string): void {
    const key = vertexKey(kind, '', name);
    if (node === '') this.#release(key);
    else this.#hold(key, { node, vertices: [key] });
  }

  /** How many vertices are known; 0 again once everything is gone. */
  get size(): number {
    return this.#nodes.size + this.#volumes.size + this.#volumesOfSecret.size;
  }

  #mounts(node: string, volume: string): boolean {
    const claim = this.#volumes.get(volume)?.claim;
    return claim !== undefined && this.#nodes.get(claim)?.has(node) === true;
  }

  /** A mirror pod is made by the node itself, which could otherwise name what it likes. */
  #references(pod: ApiObject): readonly string[] {
    const { namespace = '', annotations = {} } = pod.metadata;
    if (Object.hasOwn(annotations, this.#mirrorAnnotation)) return [];
    const spec = objectAt(pod, 'spec');
    const account = textAt(spec, 'serviceAccountName');
    const keys = (kind: VertexKind, names: readonly string[]) =>
      names.map((name) => vertexKey(kind, namespace, name));
    return [
      ...keys('serviceaccount', account === '' ? [] : [account]),
      ...keys('secret', secretNames(spec)),
      ...keys('configmap', configMapNames(spec)),
      ...keys('persistentvolumeclaim', claimNames(pod)),
      ...keys('resourceclaim', resourceClaimNames(pod)),
    ];
  }

  #hold(key: string, holder: Holder): void {
    const before = this.#holders.get(key);
    if (before !== undefined && sameHolder(before, holder)) return;
    this.#release(key);
    this.#holders.set(key, holder);
    for (const vertex of holder.vertices) {
      let nodes = this.#nodes.get(vertex);
      if (nodes === undefined) {
        nodes = new Map();
        this.#nodes.set(vertex, nodes);
      }
      nodes.set(holder.node, (nodes.get(holder.node) ?? 0) + 1);
    }
  }

  #release(key: string): void {
    const holder = this.#holders.get(key);
    if (holder === undefined) return;
    this.#holders.delete(key);
    for (const vertex of holder.vertices) {
      const nodes = this.#nodes.get(vertex);
      if (nodes === undefined) continue;
      const left = (nodes.get(holder.node) ?? 1) - 1;
      if (left > 0) nodes.set(holder.node, left);
      else nodes.delete(holder.node);
      if (nodes.size === 0) this.#nodes.delete(vertex);
    }
  }
}

/** Names have no slash and no blank, so that no two vertices share a key. */
function vertexKey(kind: VertexKind, namespace: string, name: string): string {
  return `${kind} ${namespace}/${name}`;
}

function sameHolder(one: Holder, other: Holder): boolean {
  return (
    one.node === other.node &&
    one.vertices.length === other.vertices.length &&
    one.vertices.every((vertex, index) => vertex === other.vertices[index])
  );
}

/** Drivers whose Secret is in the claim's namespace unless they name another. */
const driversOfClaim = ['cephfs', 'flexVolume', 'rbd', 'scaleIO', 'iscsi'];
/** Drivers that name the namespace themselves. */
const driversOfOwn = ['cinder', 'storageos'];
/**
 * The Secrets of a CSI volume that a node uses; others are for the controller beside the driver.
 */
const csiReferences = ['nodePublishSecretRef', 'nodeStageSecretRef', 'nodeExpandSecretRef'];

function secretsOfVolume(spec: JsonObject, claimNamespace: string): readonly string[] {
  const found: string[] = [];
  const add = (namespace: string, name: string) => {
    if (name !== '') found.push(vertexKey('secret', namespace, name));
  };
  const azure = textAt(spec, 'azureFile', 'secretNamespace') || claimNamespace;
  add(azure, textAt(spec, 'azureFile', 'secretName'));
  const reference = (path: readonly string[], fallback: string) => {
    const value = at(spec, ...path);
    if (isObject(value)) add(textAt(value, 'namespace') || fallback, textAt(value, 'name'));
  };
  for (const driver of driversOfClaim) reference([driver, 'secretRef'], claimNamespace);
  for (const driver of driversOfOwn) reference([driver, 'secretRef'], '');
  for (const member of csiReferences) reference(['csi', member], '');
  return [...new Set(found)];
}
