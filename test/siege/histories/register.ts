import { type Data, dataAfter, dataText, type Operation, type Shown } from './operation.ts';

/**
 * One key as a register with compare-and-swap: the model of a server that executes one command
 * after the other.
 */
export interface RegisterState {
  readonly data: Data | undefined;
  /** Undefined if the answer to the write was lost and its version was never shown. */
  readonly version: number | undefined;
  readonly uid: string | undefined;
  /** The highest known version of the key; later writes have higher ones. */
  readonly floor: number;
}

export const emptyRegister: RegisterState = {
  data: undefined,
  version: undefined,
  uid: undefined,
  floor: 0,
};

/** The state as text; states with the same text permit the same continuations. */
export function registerText({ data, version, uid, floor }: RegisterState): string {
  return `${version ?? '?'} ${uid ?? '?'} ${floor} ${dataText(data)}`;
}

/**
 * Executes an operation with its actual outcome. Returns undefined if a register in this state
 * cannot answer like that.
 *
 * @param writtenAt version of the operation's write, if some answer or event showed it
 */
export function step(
  state: RegisterState,
  operation: Operation,
  writtenAt: number | undefined,
): RegisterState | undefined {
  const { command, outcome } = operation;
  const isThere = state.data !== undefined;
  switch (outcome.type) {
    case 'refused':
      return state;
    case 'absent':
      return isThere ? undefined : state;
    case 'exists':
      return isThere ? state : undefined;
    case 'conflict':
      return isThere && 'expect' in command && state.version !== command.expect ? state : undefined;
    case 'removed':
      return removed(state, operation, outcome.uid);
    case 'done':
      return command.type === 'read'
        ? agreed(state, outcome.shown)
        : agreed(written(state, operation, outcome.shown.version), outcome.shown);
    case 'unknown':
      return command.type === 'delete'
        ? removed(state, operation, undefined)
        : written(state, operation, writtenAt);
  }
}

function isExpected(state: RegisterState, { command }: Operation): boolean {
  const expect = 'expect' in command ? command.expect : undefined;
  return expect === undefined || expect === state.version;
}

function removed(
  state: RegisterState,
  operation: Operation,
  uid: string | undefined,
): RegisterState | undefined {
  if (state.data === undefined || !isExpected(state, operation)) return undefined;
  if (uid !== undefined && state.uid !== undefined && uid !== state.uid) return undefined;
  return { ...emptyRegister, floor: state.floor };
}

function written(
  state: RegisterState,
  operation: Operation,
  version: number | undefined,
): RegisterState | undefined {
  if (!isExpected(state, operation)) return undefined;
  if (version !== undefined && version <= state.floor) return undefined;
  const data = dataAfter(operation.command, state.data);
  if (data === undefined) return undefined;
  const uid = state.data === undefined ? undefined : state.uid;
  return { data, version, uid, floor: version ?? state.floor };
}

/** Adds the information of an answer to the state; undefined if the answer contradicts it. */
function agreed(state: RegisterState | undefined, shown: Shown): RegisterState | undefined {
  if (state === undefined || dataText(state.data) !== dataText(shown.data)) return undefined;
  if (state.uid !== undefined && state.uid !== shown.uid) return undefined;
  if (state.version !== undefined && state.version !== shown.version) return undefined;
  if (shown.version < state.floor) return undefined;
  return { ...state, version: shown.version, uid: shown.uid, floor: shown.version };
}
