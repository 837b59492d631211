import type { Clock } from '@wheelhouse/machinery/browser';
import type { Subject } from '../model/access.ts';
import type { Api } from '../model/api.ts';
import type { Discovered } from '../model/discovery.ts';
import type { Kind } from '../model/kinds.ts';
import type { ResourceRoute, Route } from '../model/route.ts';
import type { SchemaSource } from '../model/schema.ts';

/** What a page works with. */
export interface PageContext {
  readonly api: Api;
  readonly clock: Clock;
  readonly subject: Subject;
  readonly schemas: SchemaSource;
  readonly random: () => number;
  /** What the server serves now; a page that is open while it changes asks again. */
  readonly discovered: () => Discovered;
  /** Namespaces the user has seen, for inputs to suggest. */
  readonly namespaces: () => readonly string[];
  /** Runs a task before the next picture, once however often it is asked for. */
  readonly beforeNextFrame: (task: () => void) => void;
  go(route: Route): void;
  /** Says something that happened, on screen and to screen readers. */
  announce(message: string): void;
  /** Puts a text on the clipboard. */
  copy(text: string): Promise<void>;
}

/** What is shown in the middle of the console. */
export interface Page {
  readonly title: string;
  readonly root: HTMLElement;
  /** Whether it holds something the user has written and not saved. */
  readonly hasUnsaved?: () => boolean;
  /** Follows again what an expired sign-in had ended. */
  readonly resume?: () => void;
  /** It is about a kind that the server does not serve, or not yet. */
  readonly isUnserved?: boolean;
  /** Ends what the page has begun: watches, timers. */
  close(): void;
}

/** The kind that a route names; undefined when the server does not serve it now. */
export function kindAt(
  { kinds }: Discovered,
  { group, version, resource }: ResourceRoute,
): Kind | undefined {
  return kinds.find(
    (kind) => kind.group === group && kind.version === version && kind.resource === resource,
  );
}

/** The part of a kind that its routes name. */
export function routeOfKind({ group, version, resource }: Kind): ResourceRoute {
  return { group, version, resource };
}
