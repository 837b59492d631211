import {
  CoreV1Api,
  CustomObjectsApi,
  type Informer,
  type KubeConfig,
  type KubernetesObject,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
} from '@kubernetes/client-node';

/** The custom kind that `../crd/boats.yaml` defines. */
export interface Boat extends KubernetesObject {
  spec: { crew: string[] };
  status?: { crewSize?: number };
}

const boats = { group: 'harbor.example.com', version: 'v1', plural: 'boats' };
const retryMs = 100;

const applying = setHeaderOptions('Content-Type', PatchStrategy.ServerSideApply);
const merging = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);

/**
 * Keeps the ConfigMap `NAME-crew` of each Boat, which the Boat owns, and the size of its crew in
 * the Boat's status. Retries after errors.
 */
export class BoatController {
  readonly #core: CoreV1Api;
  readonly #custom: CustomObjectsApi;
  readonly #informer: Informer<Boat>;
  readonly #timers = new Map<string, NodeJS.Timeout>();
  /** Reconciles one Boat after another. */
  #work: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(kubeconfig: KubeConfig) {
    this.#core = kubeconfig.makeApiClient(CoreV1Api);
    this.#custom = kubeconfig.makeApiClient(CustomObjectsApi);
    const path = `/apis/${boats.group}/${boats.version}/${boats.plural}`;
    const list = () => this.#custom.listClusterCustomObject(boats);
    this.#informer = makeInformer<Boat>(kubeconfig, path, list);
    this.#informer.on('add', (boat) => this.#enqueue(boat));
    this.#informer.on('update', (boat) => this.#enqueue(boat));
    this.#informer.on('error', () => this.#restart());
  }

  /** Lists the Boats, then watches them. */
  async start(): Promise<void> {
    await this.#informer.start();
  }

  /** Resolves when no reconciliation is in progress. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#informer.stop();
    for (const timer of this.#timers.values()) clearTimeout(timer);
    await this.#work;
  }

  #enqueue(boat: Boat): void {
    const key = `${boat.metadata?.namespace}/${boat.metadata?.name}`;
    clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
    this.#work = this.#work
      .then(() => (this.#stopped ? undefined : this.#reconcile(boat)))
      .catch(() => this.#later(key, () => this.#enqueue(boat)));
  }

  #restart(): void {
    this.#later('watch', () => void this.start().catch(() => this.#restart()));
  }

  #later(key: string, run: () => void): void {
    if (!this.#stopped) this.#timers.set(key, setTimeout(run, retryMs));
  }

  async #reconcile(boat: Boat): Promise<void> {
    const { name = '', namespace = '', uid = '' } = boat.metadata ?? {};
    const { crew } = boat.spec;
    const owner = { apiVersion: 'harbor.example.com/v1', kind: 'Boat', name, uid };
    const body = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: `${name}-crew`, ownerReferences: [{ ...owner, controller: true }] },
      data: { crew: crew.join('\n') },
    };
    const list = { name: body.metadata.name, namespace, body };
    const fieldManager = 'harbor-controller';
    await this.#core.patchNamespacedConfigMap({ ...list, fieldManager, force: true }, applying);
    if (boat.status?.crewSize === crew.length) return;
    const status = { status: { crewSize: crew.length } };
    const target = { ...boats, name, namespace, body: status };
    await this.#custom.patchNamespacedCustomObjectStatus(target, merging);
  }
}
