import { type Data, dataAfter, dataText, type Operation, type Shown } from './operation.ts';

/**
 * One key as a register with compare-and-swap: what a server must look like that carries out one
 * command after the other.
 */
export interface RegisterState {
  readonly data: Data | undefined;
  /** Undefined where the answer to the write was lost, and nobody saw its version. */
  readonly version: number | undefined;
  readonly uid: string | undefined;
  /** The highest version that the key is known to have had: later writes have higher ones. */
  readonly floor: number;
}

export const emptyRegister: RegisterState = {
  data: undefined,
  version: undefined,
  uid: undefined,
  floor: 0,
};

/** The state as text; states with the same text permit the same futures. */
export function registerText({ data, version, uid, floor }: RegisterState): string {
  return `${version ?? '?'} ${uid ?? '?'} ${floor} ${dataText(data)}`;
}

/**
 * Carries out an operation with the outcome it had. Returns undefined where a register in this
 * state cannot answer so.
 *
 * @param writtenAt version of the operation's write where some answer or event showed it
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

/** The state with what an answer adds to it; undefined where the answer contradicts it. */
function agreed(state: RegisterState | undefined, shown: Shown): RegisterState | undefined {
  if (state === undefined || dataText(state.data) !== dataText(shown.data)) return undefined;
  if (state.uid !== undefined && state.uid !== shown.uid) return undefined;
  if (state.version !== undefined && state.version !== shown.version) return undefined;
  if (shown.version < state.floor) return undefined;
  return { ...state, version: shown.version, uid: shown.uid, floor: shown.version };
}
