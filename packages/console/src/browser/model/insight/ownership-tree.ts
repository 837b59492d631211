import { isObject, type JsonObject } from '@wheelhouse/machinery/browser';
import { inParallel } from '../actions.ts';
import type { Api } from '../api.ts';
import { ApiFailure, objectOf, objectsOf, textOf } from '../failure.ts';
import { collectionPath, type Kind, type ObjectName, objectPath } from '../kinds.ts';
import { countedKinds, metadataType, objectMetadataType } from './overview.ts';

/** An object in the ownership tree. */
export interface TreeNode {
  readonly uid: string;
  readonly kind: string;
  readonly name: string;
  /** Undefined for an owner that does not exist or that the user may not read. */
  readonly target: ObjectName | undefined;
  readonly role: 'subject' | 'owner' | 'dependent';
  readonly isTerminating: boolean;
}

/** The owners of an object up to the root, and all its dependents. */
export interface OwnershipTree {
  readonly nodes: readonly TreeNode[];
  readonly edges: readonly { readonly owner: string; readonly dependent: string }[];
  /** Kinds that could not be listed; their dependents are missing. */
  readonly unread: readonly string[];
  /** Whether dependents were omitted because of the limit. */
  readonly isTruncated: boolean;
}

interface Found {
  readonly target: ObjectName;
  readonly metadata: JsonObject;
}

const pageSize = 500;
/** Limits on the objects read per kind and shown in total. */
const readMax = 5_000;
const nodesMax = 200;

/**
 * Finds the owners and dependents of an object by the owner references of all objects in its
 * namespace, or in all namespaces for a cluster-scoped object. Rejects if the object itself cannot
 * be read.
 */
export async function loadTree(
  api: Api,
  of: {
    readonly target: ObjectName;
    readonly kinds: readonly Kind[];
    readonly signal: AbortSignal;
  },
): Promise<OwnershipTree> {
  const { target, kinds, signal } = of;
  const unread: string[] = [];
  const { namespace } = target;
  const accept = objectMetadataType;
  const object = await api.json({ path: objectPath(target), accept, signal });
  const metadata = objectOf(object, 'metadata');
  const objects: Found[] = [{ target, metadata }];
  let isCut = false;
  const searchedKinds = countedKinds(kinds).filter(({ resource }) => resource !== 'events');
  await inParallel(searchedKinds, async (kind) => {
    try {
      const list = await listMetadata(api, { kind, namespace, signal });
      for (const entry of list.objects) objects.push(entry);
      isCut ||= list.isCut;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ApiFailure) || error.code !== 404) unread.push(kind.resource);
    }
  });
  const tree = treeOf(objects, textOf(metadata, 'uid'));
  return { ...tree, unread, isTruncated: tree.isTruncated || isCut };
}

async function listMetadata(
  api: Api,
  of: { readonly kind: Kind; readonly namespace: string | undefined; readonly signal: AbortSignal },
): Promise<{ readonly objects: readonly Found[]; readonly isCut: boolean }> {
  const { kind, namespace, signal } = of;
  const objects: Found[] = [];
  let token = '';
  do {
    const path = collectionPath(kind, namespace);
    const query = { limit: pageSize, continue: token };
    const list = await api.json({ path, query, accept: metadataType, signal });
    for (const item of objectsOf(list, 'items')) {
      const metadata = objectOf(item, 'metadata');
      const namespace = textOf(metadata, 'namespace') || undefined;
      objects.push({ target: { kind, namespace, name: textOf(metadata, 'name') }, metadata });
    }
    token = textOf(objectOf(list, 'metadata'), 'continue');
  } while (token !== '' && objects.length < readMax);
  return { objects, isCut: token !== '' };
}

function treeOf(found: readonly Found[], subject: string): Omit<OwnershipTree, 'unread'> {
  const byUid = new Map(found.map((entry) => [textOf(entry.metadata, 'uid'), entry]));
  const dependents = new Map<string, string[]>();
  for (const [uid, { metadata }] of byUid) {
    for (const reference of objectsOf(metadata, 'ownerReferences')) {
      const owner = textOf(reference, 'uid');
      const uids = dependents.get(owner);
      if (uids === undefined) dependents.set(owner, [uid]);
      else uids.push(uid);
    }
  }
  const nodes = new Map<string, TreeNode>();
  const edges: { owner: string; dependent: string }[] = [];
  nodes.set(subject, nodeOf(byUid.get(subject), { uid: subject, role: 'subject' }));
  addOwners(subject, { byUid, nodes, edges });
  const isTruncated = addDependents(subject, { byUid, nodes, edges, dependents });
  return { nodes: [...nodes.values()], edges, isTruncated };
}

interface TreeInProgress {
  readonly byUid: ReadonlyMap<string, Found>;
  readonly nodes: Map<string, TreeNode>;
  readonly edges: { owner: string; dependent: string }[];
}

function addOwners(subject: string, { byUid, nodes, edges }: TreeInProgress): void {
  const queue = [subject];
  for (let uid = queue.pop(); uid !== undefined; uid = queue.pop()) {
    const { metadata = {} } = byUid.get(uid) ?? {};
    for (const reference of objectsOf(metadata, 'ownerReferences')) {
      const owner = textOf(reference, 'uid');
      edges.push({ owner, dependent: uid });
      if (nodes.has(owner) || nodes.size >= nodesMax) continue;
      nodes.set(owner, nodeOf(byUid.get(owner), { uid: owner, role: 'owner', reference }));
      queue.push(owner);
    }
  }
}

/** Adds the dependents breadth-first; returns whether the limit omitted any. */
function addDependents(
  subject: string,
  tree: TreeInProgress & { readonly dependents: ReadonlyMap<string, readonly string[]> },
): boolean {
  const { byUid, nodes, edges, dependents } = tree;
  const queue = [subject];
  for (let at = 0; at < queue.length; at += 1) {
    const owner = queue[at] ?? '';
    for (const uid of dependents.get(owner) ?? []) {
      if (!nodes.has(uid) && nodes.size >= nodesMax) return true;
      edges.push({ owner, dependent: uid });
      if (nodes.has(uid)) continue;
      nodes.set(uid, nodeOf(byUid.get(uid), { uid, role: 'dependent' }));
      queue.push(uid);
    }
  }
  return false;
}

function nodeOf(
  found: Found | undefined,
  of: { readonly uid: string; readonly role: TreeNode['role']; readonly reference?: JsonObject },
): TreeNode {
  const { uid, role, reference = {} } = of;
  if (found === undefined) {
    const [kind, name] = [textOf(reference, 'kind'), textOf(reference, 'name')];
    return { uid, role, kind, name, target: undefined, isTerminating: false };
  }
  const { target, metadata } = found;
  const isTerminating = isObject(metadata) && metadata['deletionTimestamp'] !== undefined;
  return { uid, role, kind: target.kind.kind, name: target.name, target, isTerminating };
}
