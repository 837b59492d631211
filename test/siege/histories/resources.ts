/** A kind whose objects have `data` that the server does not interpret. */
export interface Resource {
  readonly apiVersion: string;
  readonly kind: string;
  /** Whether an update may omit the version. */
  readonly replacesAnyVersion: boolean;
  /** Path of the collection in a namespace. */
  readonly collection: (namespace: string) => string;
  /** What must exist before: the path of a collection, and the object. */
  readonly definition?: { readonly path: string; readonly body: object };
}

const group = 'histories.example.com';
const schema = {
  type: 'object',
  properties: { data: { type: 'object', additionalProperties: { type: 'string' } } },
};

export const resources: readonly Resource[] = [
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    replacesAnyVersion: true,
    collection: (namespace) => `/api/v1/namespaces/${namespace}/configmaps`,
  },
  {
    apiVersion: `${group}/v1`,
    kind: 'Register',
    replacesAnyVersion: false,
    collection: (namespace) => `/apis/${group}/v1/namespaces/${namespace}/registers`,
    definition: {
      path: '/apis/apiextensions.svc.io/v1/customresourcedefinitions',
      body: {
        apiVersion: 'apiextensions.svc.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: `registers.${group}` },
        spec: {
          group,
          scope: 'Namespaced',
          names: { plural: 'registers', singular: 'register', kind: 'Register' },
          versions: [
            { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } },
          ],
        },
      },
    },
  },
];
