import { type PathElement, showElement } from './path-element.ts';
import type { TypedProblem } from './typed-errors.ts';

/** Where a walk is; its path is put into words only when something is wrong there. */
export interface Place {
  readonly problems: TypedProblem[];
  readonly parent: Place | undefined;
  /** The step that leads here: a field's by its bare name, since most are never put into words. */
  readonly element: PathElement;
  readonly isField: boolean;
}

/** The root of a walk. */
export function rootPlace(): Place {
  return { problems: [], parent: undefined, element: '', isField: false };
}

/** One step further down. */
export function below(place: Place, element: PathElement): Place {
  return { problems: place.problems, parent: place, element, isField: false };
}

/** One step further down, to a field. */
export function belowField(place: Place, name: string): Place {
  return { problems: place.problems, parent: place, element: name, isField: true };
}

/** Complains about the value at a place. */
export function complain(place: Place, ...messages: readonly string[]): void {
  const path = showPlace(place);
  for (const message of messages) place.problems.push({ path, message });
}

function showPlace(place: Place): string {
  const steps: string[] = [];
  for (let at: Place | undefined = place; at?.parent !== undefined; at = at.parent) {
    steps.push(at.isField ? `.${at.element}` : showElement(at.element));
  }
  return steps.reverse().join('');
}
