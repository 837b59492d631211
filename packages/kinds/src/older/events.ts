import type { ApiObject, Dialect } from '@wheelhouse/machinery';
import { eventsGroupLabels, validateEvent } from '../core/event.ts';
import type { OlderKind } from './contract.ts';

/** Events of `v1beta1`: the current form, with the rules of the core group's. */
export function olderEvents(dialect: Dialect): readonly OlderKind[] {
  const judge = (object: ApiObject) =>
    validateEvent(object, { dialect, controllerField: 'reportingController' });
  return [
    {
      facts: 'events',
      kind: 'Event',
      older: [
        {
          facts: 'events',
          version: 'v1beta1',
          rules: () => ({
            validateCreate: (_, object) => judge(object),
            validateUpdate: (_, object) => judge(object),
            fieldLabels: { v1beta1: eventsGroupLabels },
          }),
        },
      ],
    },
  ];
}
