import type { KindBehavior, ObjectConverter } from '../kind-behavior.ts';

/** The behavior of the kind that a definition declares; the converter, where it names a webhook. */
export function customBehavior(
  definitionName: string,
  converter: ObjectConverter | undefined,
): KindBehavior {
  return {
    definitionName,
    converter,
    lifetime: 'definition',
    reshapesStored: true,
    judgedIn: 'request version',
    bodies: 'unstructured',
    serverObjects: 'bare',
    offersProtobuf: false,
    offersStrategicMerge: false,
    selectableFields: 'declared',
    listMetadata: { continue: '' },
    listItems: 'typed',
    hasSchemaRules: true,
    metadataSchema: 'published',
    ownership,
    paths,
    scale,
    documents,
    goTypeName: (_, of) => `unstructured.Unstructured${of === 'list' ? 'List' : ''}`,
  };
}

const ownership: KindBehavior['ownership'] = {
  conversionKeeps: 'all fields',
  resetsIn: 'request version',
};

const paths: KindBehavior['paths'] = {
  deprecationWarning: 'every path',
  unservedVerb: 'by resource',
  acrossNamespaces: 'reads',
  unknownSubresource: 'object',
};

const scale: KindBehavior['scale'] = {
  paths: undefined,
  selector: 'text',
  requiresReplicas: true,
  judgedAs: 'object',
  patchChecksUid: false,
  columnFormats: 'name and date',
};

const documents: KindBehavior['documents'] = {
  verbs: () => ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'],
  namesOwnVersion: true,
  storageHash: 'while served',
  schemas: 'own definition',
  bodyTypes: ['application/json', 'application/yaml'],
  listsStreams: false,
  listsWatchPaths: false,
  readQuery: ['resourceVersion'],
  collectionDeletion: 'as list',
  patchStatuses: [200],
  subresourceKind: 'of the object',
};
