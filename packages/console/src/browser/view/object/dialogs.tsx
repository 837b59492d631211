import { useEffect, useState } from 'preact/hooks';
import {
  type Deletion,
  deleteObject,
  readScale,
  type Scale,
  writeScale,
} from '../../model/actions.ts';
import { messageOf, objectOf, textOf } from '../../model/failure.ts';
import type { ObjectName } from '../../model/kinds.ts';
import type { LoadedObject } from '../../model/object.ts';
import { useApp } from '../parts/app.ts';
import { ActionDialog, Field, Toggle } from '../parts/basics.tsx';
import { asPropagation, PropagationChoice } from '../parts/deletion.tsx';

/** Asks how an object is to be deleted, and deletes it: this very one, as it was seen if wanted. */
export function DeleteDialog(props: {
  readonly target: ObjectName;
  /** Undefined when the user may not read it. */
  readonly object: LoadedObject | undefined;
  readonly onClose: () => void;
}) {
  const { target, onClose } = props;
  const app = useApp();
  const [seen] = useState(props.object);
  const [propagation, setPropagation] = useState('');
  const [isUnchanged, setUnchanged] = useState(true);
  const [grace, setGrace] = useState('');
  const act = async (): Promise<undefined> => {
    const wanted = asPropagation(propagation);
    const uid = textOf(objectOf(seen?.value ?? {}, 'metadata'), 'uid');
    const how: Deletion = {
      ...(seen === undefined ? {} : { uid }),
      ...(wanted === undefined ? {} : { propagation: wanted }),
      ...(seen !== undefined && isUnchanged ? { resourceVersion: seen.resourceVersion } : {}),
      ...(grace === '' ? {} : { gracePeriodSeconds: Number(grace) }),
    };
    const outcome = await deleteObject(app.api, target, how);
    app.announce(`${target.name} is ${outcome === 'gone' ? 'deleted' : 'being deleted'}.`);
    return undefined;
  };
  return (
    <ActionDialog
      title={`Delete ${target.kind.kind} ${target.name}?`}
      action="Delete"
      isDangerous
      act={act}
      onClose={onClose}
    >
      <p>This cannot be undone.</p>
      <PropagationChoice value={propagation} onChange={setPropagation} />
      {seen !== undefined && (
        <Toggle label="Only if unchanged" isOn={isUnchanged} onChange={setUnchanged} />
      )}
      <Field label="Grace period in seconds">
        <input
          type="number"
          min="0"
          placeholder="default of the object"
          value={grace}
          onInput={(event) => setGrace(event.currentTarget.value)}
        />
      </Field>
    </ActionDialog>
  );
}

/** Asks for the number of replicas; opens once the present one is known. */
export function ScaleDialog(props: { readonly target: ObjectName; readonly onClose: () => void }) {
  const { target, onClose } = props;
  const app = useApp();
  const [scale, setScale] = useState<Scale>();
  const [wanted, setWanted] = useState('');
  // Not for every change: read once, when it opens.
  useEffect(() => {
    readScale(app.api, target).then(
      (read) => {
        setScale(read);
        setWanted(String(read.wanted));
      },
      (error: unknown) => {
        app.announce(messageOf(error));
        onClose();
      },
    );
  }, []);
  if (scale === undefined) return null;
  const act = async (): Promise<undefined> => {
    const after = await writeScale(app.api, target, { ...scale, wanted: Number(wanted) });
    setScale(after);
    app.announce(`${target.name} is to have ${after.wanted} replicas.`);
    return undefined;
  };
  return (
    <ActionDialog title={`Scale ${target.name}`} action="Scale" act={act} onClose={onClose}>
      <p>There are {scale.present} now.</p>
      <Field label="Replicas">
        <input
          type="number"
          required
          value={wanted}
          onInput={(event) => setWanted(event.currentTarget.value)}
        />
      </Field>
    </ActionDialog>
  );
}
