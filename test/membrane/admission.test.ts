import { describe, expect, it } from 'vitest';
import { Admission } from '../../adapters/membrane/admission.ts';
import { refusalReporter } from '../../adapters/membrane/refusals.ts';
import { manualClock } from './manual-clock.ts';
import { recordingService } from './recording-service.ts';

function bucket(options = { perSecond: 100, burst: 10 }) {
  const clock = manualClock();
  const admission = new Admission({ clock, ...options });
  let admitted = 0;
  const enter = (cost = 1) => admission.enter(cost, () => (admitted += 1));
  return { clock, admission, enter, admitted: () => admitted };
}

describe('Admission', () => {
  it('admits the burst at once, then the rate, in order and without a loss', () => {
    const { clock, admission, enter, admitted } = bucket();
    for (let i = 0; i < 25; i += 1) enter();
    expect(admitted()).toBe(10);
    expect(admission.waiting).toBe(15);
    clock.advance(50);
    expect(admitted()).toBe(15);
    clock.advance(100);
    expect(admitted()).toBe(25);
    expect(clock.timers).toBe(0);
  });

  it('lets nobody overtake who waits', () => {
    const clock = manualClock();
    const admission = new Admission({ clock, perSecond: 100, burst: 10 });
    const order: string[] = [];
    admission.enter(8, () => order.push('first'));
    admission.enter(5, () => order.push('dear'));
    admission.enter(1, () => order.push('cheap'));
    expect(order).toEqual(['first']);
    clock.advance(1000);
    expect(order).toEqual(['first', 'dear', 'cheap']);
  });

  it('a charge made afterwards delays the next request by its cost', () => {
    const { clock, admission, enter, admitted } = bucket();
    enter();
    admission.charge(29);
    enter();
    clock.advance(209);
    expect(admitted()).toBe(1);
    clock.advance(1);
    expect(admitted()).toBe(2);
  });

  it('admits a request that costs more than the burst from a full bucket', () => {
    const { clock, enter, admitted } = bucket();
    enter(500);
    expect(admitted()).toBe(1);
    enter();
    clock.advance(4_910 - 1);
    expect(admitted()).toBe(1);
    clock.advance(1);
    expect(admitted()).toBe(2);
  });

  it('forgets a request that left, and all when it closes', () => {
    const { clock, admission, enter, admitted } = bucket();
    enter(10);
    const leave = enter();
    enter();
    leave();
    clock.advance(10);
    expect(admitted()).toBe(2);
    enter(10);
    admission.close();
    clock.advance(10_000);
    expect(admitted()).toBe(2);
    expect(clock.timers).toBe(0);
  });
});

describe('refusalReporter', () => {
  it('reports the first refusals of a flood and then a few each second', () => {
    const clock = manualClock();
    const service = recordingService();
    const refused = refusalReporter({ service, clock, sandbox: { tenant: 'acme', user: 'ada', sandbox: 'gen-ada' } });
    for (let i = 0; i < 10_000; i += 1) refused('call', 'unauthenticated');
    expect(service.refusals).toHaveLength(20);
    clock.advance(5_000);
    for (let i = 0; i < 10_000; i += 1) refused('call', 'unauthenticated');
    expect(service.refusals).toHaveLength(30);
  });
});
