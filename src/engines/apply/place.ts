import { type PathElement, showElement } from './path-element.ts';
import type { TypedProblem } from './typed-errors.ts';

/** Where a walk is; its path is put into words only when something is wrong there. */
export interface Place {
  readonly problems: TypedProblem[];
  readonly parent: Place | undefined;
  readonly element: PathElement;
}

/** The root of a walk. */
export function rootPlace(): Place {
  return { problems: [], parent: undefined, element: '' };
}

/** One step further down. */
export function below(place: Place, element: PathElement): Place {
  return { problems: place.problems, parent: place, element };
}

/** Complains about the value at a place. */
export function complain(place: Place, ...messages: readonly string[]): void {
  const path = showPlace(place);
  for (const message of messages) place.problems.push({ path, message });
}

function showPlace(place: Place): string {
  const steps: string[] = [];
  for (let at: Place | undefined = place; at?.parent !== undefined; at = at.parent) {
    steps.push(showElement(at.element));
  }
  return steps.reverse().join('');
}
