import type { ApiObject, Clock, JsonObject } from '@wheelhouse/machinery';

/**
 * The differences between built-in kinds and kinds that a definition declares (CRD-1). Each member
 * names one difference, so code that serves any kind reads the member it needs and never checks
 * whether a kind is custom.
 *
 * Both implementations list the members in this order, because V8 accesses properties faster on
 * objects with the same members.
 */
export interface KindBehavior {
  /** Name of the CustomResourceDefinition that declares the kind; empty without one. */
  readonly definitionName: string;
  /** Converts objects between versions that differ by more than their apiVersion (CRD-4). */
  readonly converter: ObjectConverter | undefined;
  /**
   * When the kind may change. `server`: never while the server runs, and kinds that are stored
   * under the same keys share a watch cache. `definition`: with its definition, which replaces its
   * cache.
   */
  readonly lifetime: 'server' | 'definition';
  /**
   * Whether objects take the form of the stored version's schema when they are read from the store
   * or converted to that version: the definition may have changed since they were written.
   */
  readonly refreshesStored: boolean;
  /** The version in which the strategy and validating admission receive objects. */
  readonly validatedIn: 'stored version' | 'request version';
  /**
   * How a body is decoded. `typed`: into a new object; the body may leave its type out, and member
   * names match in any letter case. `unstructured`: in place, by `VersionDef.decode`; apiVersion
   * and kind are required and match exactly.
   */
  readonly bodies: 'typed' | 'unstructured';
  /**
   * Members of objects that the server itself creates (bookmarks, empty lists, its own writes):
   * `complete` as the kind's type encodes them, or `bare` with only the members that are set.
   */
  readonly serverObjects: 'complete' | 'bare';
  /** Whether protobuf encodes the kind; built-in kinds also need a protobuf schema (CODEC-2). */
  readonly offersProtobuf: boolean;
  /** Whether the schema carries the merge keys of strategic merge patches (SSA-1). */
  readonly offersStrategicMerge: boolean;
  /** Field selectors: all fields indexed for the stored form, or those that a version declares. */
  readonly selectableFields: 'stored' | 'declared';
  /** Members of a list's metadata that even the last chunk includes. */
  readonly listMetadata: Readonly<JsonObject>;
  /** Whether each item of a list states its apiVersion and kind, as it does alone (API-2). */
  readonly listItems: 'typed' | 'untyped';
  /** Whether a write may run CEL rules of the kind's own schema. */
  readonly hasSchemaRules: boolean;
  /** Whether the schema describes `metadata`, or OpenAPI refers to the shared ObjectMeta. */
  readonly metadataSchema: 'own' | 'published';
  readonly ownership: OwnershipBehavior;
  readonly paths: PathBehavior;
  readonly scale: ScaleBehavior;
  readonly documents: DocumentBehavior;
  /** The Go type name in errors about unsupported encodings: `core.Pod`. */
  readonly goTypeName: (names: KindNames, of: 'object' | 'list') => string;
}

/** Names of a kind for messages. */
interface KindNames {
  readonly group: string;
  readonly kind: string;
  readonly listKind: string;
}

/** Converts objects between versions by means outside the server. */
export interface ObjectConverter {
  /** What a conversion changes: any members, as a webhook does, or the apiVersion alone. */
  readonly changes: 'members' | 'apiVersion';
  /**
   * Returns the objects in another version, in order; objects that have it already are returned as
   * they are. Does not change its inputs. Rejects with a StatusError when one cannot be converted.
   */
  convert(objects: readonly ApiObject[], apiVersion: string): Promise<readonly ApiObject[]>;
  /** Monotonic time in milliseconds, for the age of a cached result. */
  nowMs(): number;
  /** Divides the work on large objects into slices; absent: it is done in one piece. */
  readonly clock?: Pick<Clock, 'monotonic'>;
}

/** How field managers own fields across versions (SSA-10). */
interface OwnershipBehavior {
  /** Fields that stay owned after a conversion: those that the other version has, or all. */
  readonly conversionKeeps: 'fields of the version' | 'all fields';
  /** The versions in which writers cannot own the fields that an endpoint resets. */
  readonly resetsIn: 'every version' | 'request version';
}

/** How the kind's paths respond to requests that they do not serve. */
interface PathBehavior {
  /** When a deprecated version is reported: for every path, or for paths with an endpoint. */
  readonly deprecationWarning: 'every path' | 'served paths';
  /** Whether the error for an unsupported method names the path or the resource. */
  readonly unservedVerb: 'by path' | 'by resource';
  /** What a namespaced kind serves outside a namespace: any verb, or list and watch alone. */
  readonly acrossNamespaces: 'any verb' | 'reads';
  /** What the 404 for an unserved subresource reports as missing. */
  readonly unknownSubresource: 'path' | 'object';
  /**
   * How metrics count a list or watch of one object, selected by its name: as one of its collection,
   * or of its target. In the former case the sizes of watches are measured, too.
   */
  readonly countedBy: 'collection' | 'target';
}

/** Paths of the values that an object's Scale shows, in simple form (`.spec.replicas`). */
export interface ScalePaths {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  readonly labelSelectorPath?: string;
}

/** How the `scale` subresource of a kind works. */
export interface ScaleBehavior {
  /** Paths of versions that declare none; absent: such a version has no Scale. */
  readonly paths: ScalePaths | undefined;
  /** The form of the selector at its path. */
  readonly selector: 'selector or labels' | 'text';
  /** Whether a Scale without replicas is an error: of the object read, and of the Scale written. */
  readonly requiresReplicas: boolean;
  /** Which rules validate a changed Scale: those of a Scale, or only those of the scaled object. */
  readonly validatedAs: 'scale' | 'object';
  /** Whether a patch may state the uid that it expects as a precondition. */
  readonly patchChecksUid: boolean;
  /** Whether the columns of the Scale's table have the formats of a built-in or a custom kind. */
  readonly columnFormats: 'plain' | 'name and date';
}

/** How discovery and OpenAPI describe the kind (API-11, API-12). */
interface DocumentBehavior {
  /** Discovery's verbs, in discovery's order. */
  readonly verbs: (verbs: readonly string[]) => string[];
  /**
   * Whether aggregated discovery states a kind's group and version even if they are the resource's.
   */
  readonly namesOwnVersion: boolean;
  /** When discovery publishes the hash of the stored version: by its feature gate, or while served. */
  readonly storageHash: 'gated' | 'while served';
  /** Where OpenAPI keeps schemas: types that kinds share, or a definition of each kind. */
  readonly schemas: 'shared types' | 'own definition';
  /** Media types of request bodies. */
  readonly bodyTypes: readonly string[];
  /** Whether media types of watch streams are listed. */
  readonly listsStreams: boolean;
  /** Whether the deprecated paths below `/watch/` are listed. */
  readonly listsWatchPaths: boolean;
  /** Query parameters of a read in addition to those of all operations. */
  readonly readQuery: readonly 'resourceVersion'[];
  /** Parameters of a deletecollection: those of a list, or those of a deletion and its body. */
  readonly collectionDeletion: 'as list' | 'as deletion';
  /** Statuses of a patch. */
  readonly patchStatuses: readonly (200 | 201)[];
  /** The kind that operations on a subresource name. */
  readonly subresourceKind: 'of the subresource' | 'of the object';
}

/** The behavior of all built-in kinds. */
export const builtinBehavior: KindBehavior = {
  definitionName: '',
  converter: undefined,
  lifetime: 'server',
  refreshesStored: false,
  validatedIn: 'stored version',
  bodies: 'typed',
  serverObjects: 'complete',
  offersProtobuf: true,
  offersStrategicMerge: true,
  selectableFields: 'stored',
  listMetadata: {},
  listItems: 'untyped',
  hasSchemaRules: false,
  metadataSchema: 'own',
  ownership: { conversionKeeps: 'fields of the version', resetsIn: 'every version' },
  paths: {
    deprecationWarning: 'served paths',
    unservedVerb: 'by path',
    acrossNamespaces: 'any verb',
    unknownSubresource: 'path',
    countedBy: 'collection',
  },
  scale: {
    paths: {
      specReplicasPath: '.spec.replicas',
      statusReplicasPath: '.status.replicas',
      labelSelectorPath: '.spec.selector',
    },
    selector: 'selector or labels',
    requiresReplicas: false,
    validatedAs: 'scale',
    patchChecksUid: true,
    columnFormats: 'plain',
  },
  documents: {
    verbs: (verbs) => [...verbs].sort(),
    namesOwnVersion: false,
    storageHash: 'gated',
    schemas: 'shared types',
    bodyTypes: ['*/*'],
    listsStreams: true,
    listsWatchPaths: true,
    readQuery: [],
    collectionDeletion: 'as deletion',
    patchStatuses: [200, 201],
    subresourceKind: 'of the subresource',
  },
  goTypeName({ group, kind, listKind }, of) {
    const [first = ''] = group.split('.');
    const ofGroup = first === '' || first === 'events' ? 'core' : first;
    const inPackage = ofGroup === 'internal' ? 'apiserverinternal' : ofGroup;
    return `${inPackage}.${of === 'list' ? listKind : kind}`;
  },
};
