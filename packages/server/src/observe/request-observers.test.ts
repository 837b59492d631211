import { FakeClock } from '@wheelhouse/machinery/testing';
import { describe, expect, test } from 'vitest';
import { parseRequest } from '../request/parse-request.ts';
import { type Answered, arrive, type Received } from '../request/request-state.ts';
import { fakeExchange } from '../request/testing.ts';
import { type RequestObserver, RequestObservers } from './request-observers.ts';

const arrived = arrive(fakeExchange(), new FakeClock());
const received: Received = { ...arrived, phase: 'received', info: parseRequest('GET', '/version') };
const answered: Answered = { phase: 'answered', last: received, failure: undefined };

describe('the observers of requests', () => {
  test('run in order, each for the events that it has callbacks for', () => {
    const calls: string[] = [];
    const follower = (name: string): RequestObserver => ({
      receive: ({ phase }) => void calls.push(`${name} ${phase}`),
    });
    const finisher: RequestObserver = { finish: () => void calls.push('finish') };
    const observers = new RequestObservers([follower('a'), finisher, follower('b')]);
    observers.notifyGate('receive', received);
    expect(calls).toEqual(['a received', 'b received']);
    expect(observers.notifyEnd('finish', answered)).toBeUndefined();
    expect(calls).toEqual(['a received', 'b received', 'finish']);
  });

  test('fail the request if they throw, and later ones do not run', () => {
    const calls: string[] = [];
    const failing: RequestObserver = {
      receive() {
        throw new Error('no');
      },
    };
    const observers = new RequestObservers([failing, { receive: () => void calls.push('late') }]);
    expect(() => observers.notifyGate('receive', received)).toThrow('no');
    expect(calls).toEqual([]);
  });

  test('run one after the other at the end of a request', async () => {
    const calls: string[] = [];
    let release = () => {};
    const slow: RequestObserver = {
      async finish() {
        calls.push('slow begins');
        await new Promise<void>((resolve) => {
          release = resolve;
        });
        calls.push('slow ends');
      },
    };
    const quick: RequestObserver = { finish: () => void calls.push('quick') };
    const ended = new RequestObservers([quick, slow, quick]).notifyEnd('finish', answered);
    expect(calls).toEqual(['quick', 'slow begins']);
    release();
    await ended;
    expect(calls).toEqual(['quick', 'slow begins', 'slow ends', 'quick']);
  });
});
