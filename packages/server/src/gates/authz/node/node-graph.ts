import { at, objectAt, podReferencesSteps, textAt } from '@wheelhouse/kinds';
import { type ApiObject, isObject, type JsonObject, runInOnePiece } from '@wheelhouse/machinery';

/** Types of vertices at which an edge of the graph may begin. */
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

/** An object that nodes may need. */
interface Vertex {
  readonly kind: VertexKind;
  /** Empty for cluster-scoped kinds. */
  readonly namespace: string;
  readonly name: string;
}

interface Volume {
  /** Vertex key of the bound claim. */
  readonly claim: string;
  /** Vertex keys of the Secrets that a node needs to mount it. */
  readonly secrets: readonly string[];
}

/** What the graph needs of a pod. */
export interface PodVertices extends Referrer {
  /** The pod's own vertex key. */
  readonly key: string;
}

interface Referrer {
  readonly node: string;
  readonly vertices: readonly string[];
}

/**
 * The objects that each node needs (AUTHZ-9): pods bound to it with the objects they refer to,
 * volumes bound to the pods' claims with their Secrets, and attachments and slices that name the
 * node.
 *
 * References of pods are counted per node as pods come and go, so a query is a lookup:
 *
 *     pod web on n1 mounts secret s     nodes of `secret default/s`: { n1: 1 }
 *     pod db on n1 mounts it too                                     { n1: 2 }
 *     both are gone                     no entry
 *
 * Volumes are the only intermediate step: their claim is looked up during the query.
 */
export class NodeGraph {
  /** Node names by vertex key, with the number of references. */
  readonly #nodes = new Map<string, Map<string, number>>();
  /** The references of each pod, attachment, or slice, by its vertex key. */
  readonly #referrers = new Map<string, Referrer>();
  readonly #volumes = new Map<string, Volume>();
  /** Names of the volumes that use a Secret, by the Secret's vertex key. */
  readonly #volumesOfSecret = new Map<string, Set<string>>();
  readonly #mirrorAnnotation: string;

  constructor(options: { readonly mirrorAnnotation: string }) {
    this.#mirrorAnnotation = options.mirrorAnnotation;
  }

  /** Whether a node needs the object. */
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

  /** Adds or updates a pod. */
  setPod(pod: ApiObject): void {
    this.setPodVertices(runInOnePiece(this.podSteps(pod)));
  }

  /** Returns what `setPodVertices` needs of a pod, in steps: a pod may name thousands of objects. */
  *podSteps(pod: ApiObject): Generator<void, PodVertices> {
    const { namespace = '', name = '' } = pod.metadata;
    const key = vertexKey('pod', namespace, name);
    const node = textAt(pod, 'spec', 'nodeName');
    const vertices = node === '' ? [] : [key];
    if (node !== '') yield* this.#addReferences(pod, vertices);
    return { key, node, vertices };
  }

  /** Adds or updates a pod; one without a node has no edges. */
  setPodVertices({ key, node, vertices }: PodVertices): void {
    if (node === '') this.#removeReferrer(key);
    else this.#setReferrer(key, { node, vertices });
  }

  removePod(namespace: string, name: string): void {
    this.#removeReferrer(vertexKey('pod', namespace, name));
  }

  /** Adds or updates a volume; an unbound volume has no edges. */
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

  /** Updates an object that belongs to one node; an empty node removes it. */
  setNodeOf(kind: 'volumeattachment' | 'resourceslice', name: string, node: string): void {
    const key = vertexKey(kind, '', name);
    if (node === '') this.#removeReferrer(key);
    else this.#setReferrer(key, { node, vertices: [key] });
  }

  /** Number of vertices. */
  get size(): number {
    return this.#nodes.size + this.#volumes.size + this.#volumesOfSecret.size;
  }

  #mounts(node: string, volume: string): boolean {
    const claim = this.#volumes.get(volume)?.claim;
    return claim !== undefined && this.#nodes.get(claim)?.has(node) === true;
  }

  /** Adds the references of a pod: none of a mirror pod, which the node itself creates. */
  *#addReferences(pod: ApiObject, vertices: string[]): Generator<void, void> {
    const { namespace = '', annotations = {} } = pod.metadata;
    if (Object.hasOwn(annotations, this.#mirrorAnnotation)) return;
    const account = textAt(pod, 'spec', 'serviceAccountName');
    const references = yield* podReferencesSteps(pod);
    const kinds: readonly (readonly [VertexKind, readonly string[]])[] = [
      ['serviceaccount', account === '' ? [] : [account]],
      ['secret', references.secrets],
      ['configmap', references.configMaps],
      ['persistentvolumeclaim', references.claims],
      ['resourceclaim', references.resourceClaims],
    ];
    for (const [kind, names] of kinds) {
      for (const name of names) {
        vertices.push(vertexKey(kind, namespace, name));
        if (vertices.length % verticesPerStep === 0) yield;
      }
    }
  }

  #setReferrer(key: string, holder: Referrer): void {
    const before = this.#referrers.get(key);
    if (before !== undefined && isSameReferrer(before, holder)) return;
    this.#removeReferrer(key);
    this.#referrers.set(key, holder);
    for (const vertex of holder.vertices) {
      let nodes = this.#nodes.get(vertex);
      if (nodes === undefined) {
        nodes = new Map();
        this.#nodes.set(vertex, nodes);
      }
      nodes.set(holder.node, (nodes.get(holder.node) ?? 0) + 1);
    }
  }

  #removeReferrer(key: string): void {
    const holder = this.#referrers.get(key);
    if (holder === undefined) return;
    this.#referrers.delete(key);
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

/** Vertices that one step names. */
const verticesPerStep = 1_000;

/** The key of a vertex, unique because names contain neither slash nor space. */
function vertexKey(kind: VertexKind, namespace: string, name: string): string {
  return `${kind} ${namespace}/${name}`;
}

function isSameReferrer(left: Referrer, right: Referrer): boolean {
  return (
    left.node === right.node &&
    left.vertices.length === right.vertices.length &&
    left.vertices.every((vertex, index) => vertex === right.vertices[index])
  );
}

/** Drivers whose Secret is in the claim's namespace, unless the volume names another. */
const claimNamespaceDrivers = ['cephfs', 'flexVolume', 'rbd', 'scaleIO', 'iscsi'];
/** Drivers whose volumes always name the Secret's namespace. */
const explicitNamespaceDrivers = ['cinder', 'storageos'];
/** The Secrets of a CSI volume that nodes use; the others are for the driver's controller. */
const csiReferences = ['nodePublishSecretRef', 'nodeStageSecretRef', 'nodeExpandSecretRef'];

function secretsOfVolume(spec: JsonObject, claimNamespace: string): readonly string[] {
  const names: string[] = [];
  const add = (namespace: string, name: string) => {
    if (name !== '') names.push(vertexKey('secret', namespace, name));
  };
  const azure = textAt(spec, 'azureFile', 'secretNamespace') || claimNamespace;
  add(azure, textAt(spec, 'azureFile', 'secretName'));
  const reference = (path: readonly string[], fallback: string) => {
    const value = at(spec, ...path);
    if (isObject(value)) add(textAt(value, 'namespace') || fallback, textAt(value, 'name'));
  };
  for (const driver of claimNamespaceDrivers) reference([driver, 'secretRef'], claimNamespace);
  for (const driver of explicitNamespaceDrivers) reference([driver, 'secretRef'], '');
  for (const member of csiReferences) reference(['csi', member], '');
  return [...new Set(names)];
}
