/** An account in each group. Every deposit is journaled, and is there again after the whole cluster has ended. */
import { defineService } from 'tram-multicast';

export default defineService({
  initial: () => ({ balance: 0 }),
  deliver: (state, { deposit }) => {
    state.balance += deposit;
    return { balance: state.balance };
  },
});
