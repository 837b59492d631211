import { ensure, textAt } from '@wheelhouse/kinds';
import type { ApiObject } from '@wheelhouse/machinery';
import type { AdmissionPlugin } from '../chain.ts';
import type { AdmissionTools } from '../tools.ts';

/** Sets the default storage class of a new claim that names none (ADM-1). */
export function defaultStorageClass(tools: AdmissionTools): AdmissionPlugin {
  const { dialect } = tools;
  return defaultClass(tools, {
    name: 'DefaultStorageClass',
    member: 'storageClassName',
    older: dialect.label('storage-class', 'volume.beta'),
    classes: 'storageclasses.storage',
    marks: [
      dialect.label('is-default-class', 'storageclass'),
      dialect.label('is-default-class', 'storageclass.beta'),
    ],
  });
}

/** Sets the default class of a new Ingress that names none (ADM-1). */
export function defaultIngressClass(tools: AdmissionTools): AdmissionPlugin {
  const { dialect } = tools;
  return defaultClass(tools, {
    name: 'DefaultIngressClass',
    member: 'ingressClassName',
    older: dialect.label('ingress.class'),
    classes: 'ingressclasses.networking',
    marks: [dialect.label('is-default-class', 'ingressclass')],
  });
}

function defaultClass(
  { objects }: AdmissionTools,
  of: {
    readonly name: string;
    /** The member of the spec that names the class. */
    readonly member: string;
    /** The annotation that named the class in older releases. */
    readonly older: string;
    /** The resource of the classes. */
    readonly classes: string;
    /** Annotations that mark the default class. */
    readonly marks: readonly string[];
  },
): AdmissionPlugin {
  return {
    name: of.name,
    async mutate({ operation, target, object }) {
      if (operation !== 'CREATE' || target.subresource !== '' || object === undefined) return;
      const spec = ensure(object, 'spec');
      const className = spec[of.member];
      if (className !== undefined && className !== null) return;
      if (Object.hasOwn(object.metadata.annotations ?? {}, of.older)) return;
      const newest = newestDefault(await objects.list(of.classes, ''), of.marks);
      if (newest !== undefined) spec[of.member] = newest;
    },
  };
}

/** The name of the class marked as default; of several the newest, then the first by name. */
function newestDefault(
  classes: readonly ApiObject[],
  marks: readonly string[],
): string | undefined {
  const marked = classes.filter(({ metadata: { annotations = {} } }) =>
    marks.some((mark) => Object.hasOwn(annotations, mark) && annotations[mark] === 'true'),
  );
  const created = (candidate: ApiObject) => textAt(candidate, 'metadata', 'creationTimestamp');
  const name = (candidate: ApiObject) => candidate.metadata.name ?? '';
  const compare = (left: string, right: string) => (left < right ? -1 : Number(left > right));
  const [newest] = [...marked].sort(
    (left, right) => compare(created(right), created(left)) || compare(name(left), name(right)),
  );
  return newest?.metadata.name;
}
