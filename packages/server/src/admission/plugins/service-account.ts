import { at, ensure, namesSecrets, objectsAt, type Stored, textAt } from '@wheelhouse/kinds';
import type { Pod, PodSpec, ServiceAccount } from '@wheelhouse/kinds/types/core/v1';
import {
  type ApiObject,
  type Dialect,
  generateName,
  isObject,
  type JsonObject,
  pause,
} from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import type { AdmissionPlugin } from '../chain.ts';
import { type AdmissionTools, refusal } from '../tools.ts';

const defaultAccount = 'default';
/** Attempts to find the default account, which a controller creates soon after its namespace. */
const defaultAttempts = 10;
const retryMs = 150;

const volumeStem = 'kube-api-access-';
/** A little over an hour, which marks tokens with the default lifetime. */
const tokenSeconds = 3607;

/**
 * Sets the account of every new pod (ADM-1): by default the namespace's, which must exist; adds the
 * token volume, unless pod or account opt out, and the account's pull secrets. Restricts a pod to
 * the account's Secrets if the account requires it. Mirror pods of nodes are unchanged and must
 * have none of these.
 */
export function serviceAccount(tools: AdmissionTools): AdmissionPlugin {
  const mirror = tools.dialect.label('config.mirror');
  const enforcing = tools.dialect.label('enforce-mountable-secrets');
  const validate = async (call: AdmissionCall): Promise<void> => {
    const pod = podOf(call);
    if (pod === undefined) return;
    const isEphemeral = call.target.subresource === 'ephemeralcontainers';
    if (call.operation !== 'CREATE' && !isEphemeral) return;
    if (Object.hasOwn(pod.metadata.annotations ?? {}, mirror)) {
      if (call.operation === 'CREATE') checkMirror(call, pod);
      return;
    }
    if (textAt(pod, 'spec', 'serviceAccountName') === '') {
      const name = `${call.target.namespace}/${pod.metadata.name ?? ''}`;
      throw refusal(call, `no service account specified for pod ${name}`);
    }
    const account = await accountOf(tools, call, pod);
    if (!isTrue(account.metadata.annotations?.[enforcing])) return;
    const problem = isEphemeral
      ? containerProblem(pod, account, ['ephemeralContainers'])
      : secretProblem(pod, account);
    if (problem !== undefined) throw refusal(call, problem);
  };
  return {
    name: 'ServiceAccount',
    async mutate(call) {
      const pod = podOf(call);
      // A body for `ephemeralcontainers` may have little else; validation sees the whole pod.
      if (pod === undefined || call.operation !== 'CREATE') return;
      if (call.target.subresource !== '') return;
      if (Object.hasOwn(pod.metadata.annotations ?? {}, mirror)) return validate(call);
      const spec = ensure(pod, 'spec');
      if (textAt(spec, 'serviceAccountName') === '') setAccount(spec, defaultAccount);
      const account = await accountOf(tools, call, pod);
      if (mountsToken(spec, account)) mountToken(spec, tools.dialect);
      addPullSecrets(spec, account);
      await validate(call);
    },
    validate,
  };
}

function podOf({ target, object }: AdmissionCall): ApiObject | undefined {
  const { subresource } = target;
  return subresource === '' || subresource === 'ephemeralcontainers' ? object : undefined;
}

/** The deprecated member must match the current one. */
function setAccount(spec: JsonObject, name: string): void {
  spec['serviceAccountName'] = name;
  spec['serviceAccount'] = name;
}

function isTrue(text: string | undefined): boolean {
  return text !== undefined && ['1', 't', 'T', 'TRUE', 'true', 'True'].includes(text);
}

function checkMirror(call: AdmissionCall, pod: Stored<Pod>): void {
  const spec = pod.spec;
  if ((spec?.serviceAccountName ?? '') !== '') {
    throw refusal(call, 'a mirror pod may not reference service accounts');
  }
  if (namesSecrets(spec)) throw refusal(call, 'a mirror pod may not reference secrets');
  const projects = (spec?.volumes ?? []).some((volume) =>
    (volume.projected?.sources ?? []).some((source) => isObject(source.serviceAccountToken)),
  );
  if (projects) {
    throw refusal(call, 'a mirror pod may not use ServiceAccountToken volume projections');
  }
}

async function accountOf(
  tools: AdmissionTools,
  call: AdmissionCall,
  pod: Stored<Pod>,
): Promise<ApiObject> {
  const { namespace } = call.target;
  const name = pod.spec?.serviceAccountName ?? '';
  const attempts = name === defaultAccount ? defaultAttempts : 1;
  for (let attempt = 1; ; attempt += 1) {
    const account = await tools.objects.get('serviceaccounts', { namespace, name });
    if (account !== undefined) return account;
    if (attempt >= attempts || call.context.expired()) break;
    await pause(tools.clock, { ms: retryMs });
  }
  const why = `serviceaccount ${JSON.stringify(name)} not found`;
  throw refusal(call, `error looking up service account ${namespace}/${name}: ${why}`);
}

/** The pod's setting takes precedence over the account's. */
function mountsToken(spec: JsonObject, account: ApiObject): boolean {
  const own = spec['automountServiceAccountToken'] ?? account['automountServiceAccountToken'];
  return own !== false;
}

function mountToken(spec: Stored<PodSpec>, dialect: Dialect): void {
  const volumes = spec.volumes ?? [];
  const present = volumes.find((volume) => (volume.name ?? '').startsWith(volumeStem));
  const name = present === undefined ? generateName(volumeStem) : (present.name ?? '');
  const mountPath = `/var/run/secrets/${dialect.labelDomain}/serviceaccount`;
  let isNeeded = false;
  for (const member of ['initContainers', 'containers'] as const) {
    for (const container of spec[member] ?? []) {
      const mounts = container.volumeMounts ?? [];
      if (mounts.some((mount) => (mount?.mountPath ?? '') === mountPath)) continue;
      container.volumeMounts = [...mounts, { name, readOnly: true, mountPath }];
      isNeeded = true;
    }
  }
  if (isNeeded && present === undefined) spec.volumes = [...volumes, tokenVolume(name, dialect)];
}

function tokenVolume(name: string, dialect: Dialect): JsonObject {
  const namespace = { apiVersion: 'v1', fieldPath: 'metadata.namespace' };
  return {
    name,
    projected: {
      sources: [
        { serviceAccountToken: { expirationSeconds: tokenSeconds, path: 'token' } },
        {
          configMap: {
            name: `${dialect.namespacePrefix}root-ca.crt`,
            items: [{ key: 'ca.crt', path: 'ca.crt' }],
          },
        },
        { downwardAPI: { items: [{ path: 'namespace', fieldRef: namespace }] } },
      ],
      defaultMode: 0o644,
    },
  };
}

function addPullSecrets(spec: Stored<PodSpec>, account: Stored<ServiceAccount>): void {
  if ((spec.imagePullSecrets ?? []).length > 0) return;
  const secrets = account.imagePullSecrets ?? [];
  if (secrets.length === 0) return;
  spec.imagePullSecrets = secrets.map(({ name }) => ({ name: name ?? '' }));
}

const names = (object: ApiObject, member: string) =>
  new Set(objectsAt(object, member).map((reference) => textAt(reference, 'name')));

/** Why a pod may not use a Secret that its account does not list, in kube-apiserver's wording. */
function secretProblem(pod: Stored<Pod>, account: ApiObject): string | undefined {
  const mountable = names(account, 'secrets');
  const not = `is not allowed because service account ${account.metadata.name} does not reference`;
  for (const volume of pod.spec?.volumes ?? []) {
    if (volume.secret === undefined) continue;
    const secret = volume.secret.secretName ?? '';
    if (mountable.has(secret)) continue;
    return `volume with secret.secretName="${secret}" ${not} that secret`;
  }
  const problem = containerProblem(pod, account, ['initContainers', 'containers']);
  if (problem !== undefined) return problem;
  const pullable = names(account, 'imagePullSecrets');
  const pulls = (pod.spec?.imagePullSecrets ?? []).map(({ name }) => name ?? '');
  const index = pulls.findIndex((name) => !pullable.has(name));
  if (index < 0) return undefined;
  return `imagePullSecrets[${index}].name="${pulls[index]}" ${not} that imagePullSecret`;
}

const containerWords: Readonly<Record<string, string>> = {
  initContainers: 'init container',
  containers: 'container',
  ephemeralContainers: 'ephemeral container',
};

function containerProblem(
  pod: Stored<Pod>,
  account: ApiObject,
  members: readonly string[],
): string | undefined {
  const mountable = names(account, 'secrets');
  const not = `is not allowed because service account ${account.metadata.name} does not reference that secret`;
  for (const member of members) {
    for (const container of objectsAt(pod, 'spec', member)) {
      const subject = `${containerWords[member]} ${textAt(container, 'name')}`;
      for (const env of objectsAt(container, 'env')) {
        if (at(env, 'valueFrom', 'secretKeyRef') === undefined) continue;
        const secret = textAt(env, 'valueFrom', 'secretKeyRef', 'name');
        if (mountable.has(secret)) continue;
        const variable = `with envVar ${textAt(env, 'name')}`;
        return `${subject} ${variable} referencing secret.secretName="${secret}" ${not}`;
      }
      for (const source of objectsAt(container, 'envFrom')) {
        if (at(source, 'secretRef') === undefined) continue;
        const secret = textAt(source, 'secretRef', 'name');
        if (mountable.has(secret)) continue;
        return `${subject} with envFrom referencing secret.secretName="${secret}" ${not}`;
      }
    }
  }
  return undefined;
}
