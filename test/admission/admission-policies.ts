import type { JsonObject } from '@wheelhouse/machinery';
import { freshNamespace, type TestServer } from '../support/harness.ts';
import { configMapRule, registration } from './admission-service.ts';

export const policies = `/apis/${registration}/v1/validatingadmissionpolicies`;

/** Policies for ConfigMaps of one namespace, which are removed together. */
export interface PolicyKit {
  readonly namespace: string;
  /** Another namespace, to which no policy applies. */
  readonly params: string;
  /** The path of the ConfigMaps to which the policies apply. */
  readonly maps: string;
  /** Creates a policy; returns its name. */
  policy(spec: JsonObject, match?: JsonObject): Promise<string>;
  /** Creates a binding; returns its name. */
  binding(spec: JsonObject): Promise<string>;
  bound(
    spec: JsonObject,
    binding?: JsonObject,
    match?: JsonObject,
  ): Promise<{ readonly policy: string; readonly binding: string }>;
  clear(): Promise<void>;
}

let made = 0;

/** The two types of policies. */
const sorts = {
  Validating: { version: 'v1', spec: {}, binding: { validationActions: ['Deny'] } },
  Mutating: { version: 'v1alpha1', spec: { reinvocationPolicy: 'Never' }, binding: {} },
};

/** Creates the namespaces, without policies. */
export async function policyKit(
  server: TestServer,
  sort: keyof typeof sorts = 'Validating',
): Promise<PolicyKit> {
  const { version, spec: ownSpec, binding: ownBinding } = sorts[sort];
  const apiVersion = `${registration}/${version}`;
  const plural = `/apis/${apiVersion}/${sort.toLowerCase()}admissionpolic`;
  const namespace = await freshNamespace(server);
  const params = await freshNamespace(server);
  const paths: string[] = [];
  const create = async (path: string, body: JsonObject) => {
    made += 1;
    const name = `p${made}`;
    const answer = await server.post(path, { apiVersion, ...body, metadata: { name } });
    if (answer.status !== 201) throw new Error(`policy: ${answer.status} ${answer.text}`);
    paths.unshift(`${path}/${name}`);
    return name;
  };
  const kit: PolicyKit = {
    namespace,
    params,
    maps: `/api/v1/namespaces/${namespace}/configmaps`,
    policy: (spec, match = {}) =>
      create(`${plural}ies`, {
        kind: `${sort}AdmissionPolicy`,
        spec: {
          ...ownSpec,
          matchConstraints: {
            resourceRules: [configMapRule],
            namespaceSelector: { matchLabels: { 'svc.io/metadata.name': namespace } },
            ...match,
          },
          ...spec,
        },
      }),
    binding: (spec) =>
      create(`${plural}ybindings`, {
        kind: `${sort}AdmissionPolicyBinding`,
        spec: { ...ownBinding, ...spec },
      }),
    async bound(spec, binding = {}, match = {}) {
      const policyName = await kit.policy(spec, match);
      return { policy: policyName, binding: await kit.binding({ policyName, ...binding }) };
    },
    async clear() {
      for (const path of paths.splice(0)) await server.remove(path);
    },
  };
  return kit;
}
