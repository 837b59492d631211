import type { Clock } from '@wheelhouse/machinery/browser';
import type { Fetch, TokenStore } from '../model/ports.ts';

/** What the console needs of the window it is in. */
export interface Host {
  /** Everything is shown in it. */
  readonly root: HTMLElement;
  readonly fetch: Fetch;
  /** What the API's paths are put behind. */
  readonly base: string;
  readonly tokens: TokenStore;
  /** Keeps the choice of light or dark. */
  readonly themes: TokenStore;
  readonly clock: Clock;
  readonly random: () => number;
  readonly hasManyStreams: boolean;
  hash(): string;
  setHash(hash: string): void;
  /** Returns what ends it. */
  onHashChange(listener: () => void): () => void;
  nextFrame(task: () => void): void;
  copy(text: string): Promise<void>;
  confirm(question: string): boolean;
}
