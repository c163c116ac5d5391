import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { formatBytes, formatSignedBytes } from '../format';
import { amountText, exactAmount, halfOfBoth, isEstimate, within } from './estimate';

describe('an amount', () => {
  it('has its interval where it is an estimate, and none where it was counted', () => {
    const sampled = { outstanding_bytes: 1_572_864, outstanding_bytes_plus_minus: 122_880, total_count: 1500, total_count_plus_minus: 30 };
    assert.equal(amountText(sampled, 'outstanding_bytes'), '1.50 MiB ± 120.0 KiB');
    assert.equal(exactAmount(sampled, 'outstanding_bytes'), '1,572,864 bytes ± 122,880 bytes');
    assert.equal(amountText(sampled, 'total_count'), '1,500 ± 30');
    assert.equal(isEstimate(sampled), true);
    assert.equal(amountText({ total_count: 1500 }, 'total_count'), '1,500');
    assert.equal(isEstimate({ total_count: 1500 }), false);
    assert.equal(within(1_572_864, undefined, formatBytes), '1.50 MiB');
    assert.equal(within(1_572_864, 0, formatBytes), '1.50 MiB');
    assert.equal(within(1_572_864, 122_880, formatSignedBytes, formatBytes), '+1.50 MiB ± 120.0 KiB');
    assert.equal(halfOfBoth(3, 4), 5);
    assert.equal(halfOfBoth(undefined, undefined), 0);
  });
});
