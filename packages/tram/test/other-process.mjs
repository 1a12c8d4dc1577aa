/**
 * A client in a process of its own, for tests: connects to the cluster that it is named, multicasts each text
 * that it is sent, and sends back the replies or the code of the error.
 */
import { Client } from 'tram-multicast';

const client = await Client.connect(process.argv[2]);

process.on('message', async ({ groups, text }) => {
  try {
    const replies = await client.multicast(groups, new TextEncoder().encode(text));
    const texts = [...replies].map(([group, reply]) => [group, new TextDecoder().decode(reply)]);
    process.send({ replies: Object.fromEntries(texts) });
  } catch (error) {
    process.send({ code: error.code, retry: error.retry });
  }
});
process.on('disconnect', () => client.close());
process.send('connected');
